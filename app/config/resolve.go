package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// resolve computes the values that depend on others and checks them together.
func (l *loader) resolve() {
	l.resolveDirs()
	l.resolveTimes()
	l.resolveRest()
	l.resolveTLS()
	l.resolvePeerTLS()
	l.resolveAuth()
	l.resolveBackup()
	l.resolveThrottle()
	l.resolveDNS()
	l.checkServers()
	for _, step := range []func(){l.resolveMyID, l.resolveRole, l.resolveClientPort, l.checkPorts} {
		if len(l.errs) > 0 {
			return // a later step would blame the consequence
		}
		step()
	}
}

// defaultDataDir is where the data of a server without a zoo.cfg is.
const defaultDataDir = "./zk-lite-data"

func (l *loader) resolveDirs() {
	s := &l.s
	if s.DataDir == "" {
		if s.ConfigFile != "" {
			l.fail(l.where("data-dir"), "dataDir", "is missing",
				"name the directory for the data, as in dataDir=/var/lib/zookeeper")
		}
		s.DataDir = defaultDataDir
	}
	l.checkDir("data-dir", s.DataDir)
	if s.Audit.File == "" {
		s.Audit.File = filepath.Join(s.DataDir, AuditFile)
	}
	if s.DataLogDir == "" {
		s.DataLogDir = s.DataDir
		return
	}
	l.checkDir("data-log-dir", s.DataLogDir)
}

// checkDir finds what can never be a directory; one that is missing is made at the start.
func (l *loader) checkDir(flag, path string) {
	info, err := os.Stat(path)
	if errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir() {
		l.fail(l.where(flag), l.row(flag).key, fmt.Sprintf("%s: %v", path, syscall.ENOTDIR),
			"name a directory; it need not be there yet")
	}
}

func (l *loader) resolveTimes() {
	s := &l.s
	if s.Server.MinSessionTimeout == 0 {
		s.Server.MinSessionTimeout = 2 * s.Server.Tick
	}
	if s.Server.MaxSessionTimeout == 0 {
		s.Server.MaxSessionTimeout = 20 * s.Server.Tick
	}
	if s.Server.MinSessionTimeout > s.Server.MaxSessionTimeout {
		at := l.where("max-session-timeout")
		if l.given("min-session-timeout") {
			at = l.where("min-session-timeout")
		}
		l.fail(at, "minSessionTimeout", fmt.Sprintf("%d ms is more than maxSessionTimeout, %d ms",
			s.Server.MinSessionTimeout.Milliseconds(), s.Server.MaxSessionTimeout.Milliseconds()),
			"the defaults are 2 and 20 times tickTime")
	}
}

// minSnapCount is ZooKeeper's (ZooKeeperServer.getSnapCount).
const minSnapCount = 2

// minSnapRetain is ZooKeeper's (QuorumPeerConfig.MIN_SNAP_RETAIN_COUNT).
const minSnapRetain = 3

func (l *loader) resolveRest() {
	s := &l.s
	if !l.given("extended-types-enabled") {
		s.Server.ExtendedTypes = s.ConfigFile == ""
	}
	if n := &s.Consensus.SnapshotCommands; *n < minSnapCount {
		l.warn(l.where("snap-count"), "snapCount", "%d counts as %d, the least", *n, minSnapCount)
		*n = minSnapCount
	}
	if s.ZooKeeper.Settings.ListenBacklog != -1 {
		l.warn(l.where("client-port-listen-backlog"), "clientPortListenBacklog",
			"has no effect but to be shown by conf: the operating system's limit applies")
	}
	if s.Storage.Retain < minSnapRetain {
		l.warn(l.where("autopurge-snap-retain-count"), "autopurge.snapRetainCount",
			"%d counts as %d, the least", s.Storage.Retain, minSnapRetain)
		s.Storage.Retain = minSnapRetain
	}
	s.ZooKeeper.Words = slices.DeleteFunc(s.ZooKeeper.Words, func(w string) bool {
		unknown := !slices.Contains(fourLetterWords(), w)
		if unknown {
			l.warn(l.where("4lw-commands-whitelist"), "4lw.commands.whitelist",
				"%q is no four-letter word and has no effect; want *, or some of %s",
				shorten(w), strings.Join(fourLetterWords(), ", "))
		}
		return unknown
	})
	if s.Server.ReadOnly && !slices.Contains(s.ZooKeeper.Words, "isro") {
		s.ZooKeeper.Words = append(s.ZooKeeper.Words, "isro")
		slices.Sort(s.ZooKeeper.Words)
	}
}

func (l *loader) resolveBackup() {
	b := &l.s.Backup
	if b.Directory != "" && b.Command != "" {
		l.fail(l.where("backup-command"), "backup.command", "is set besides backup.directory",
			"set one of them: a command gets the backup instead of the directory")
	}
	if b.Timeout > b.Interval && l.given("backup-timeout") {
		l.fail(l.where("backup-timeout"), "backup.timeout", "is longer than backup.interval",
			"want at most the interval, "+b.Interval.String())
	}
	b.Timeout = min(b.Timeout, b.Interval)
}

// checkServers checks the list as a whole.
func (l *loader) checkServers() {
	at := l.where("server")
	ids, peers, clients := map[int]bool{}, map[string]int{}, map[string]int{}
	voters := 0
	for _, srv := range l.s.Servers {
		key := fmt.Sprintf("server.%d", srv.ID)
		if ids[srv.ID] {
			l.fail(at, key, "appears more than once", "give every server an id of its own")
		}
		ids[srv.ID] = true
		if !unspecified(srv.Host) {
			l.checkTaken(at, key, "peer address "+strings.ToLower(srv.PeerAddress()), srv.ID, peers)
		}
		if srv.ClientPort > 0 && !unspecified(srv.ClientHost) {
			_, client, _ := strings.Cut(srv.String(), ";")
			l.checkTaken(at, key, "client address "+strings.ToLower(client), srv.ID, clients)
		}
		if srv.Role == Participant {
			voters++
		}
	}
	switch {
	case len(l.s.Servers) == 0 && !l.s.StandaloneEnabled:
		l.fail(l.where("standalone-enabled"), "standaloneEnabled",
			"false asks for an ensemble, but no server is listed",
			"add lines server.N=..., or set standaloneEnabled=true")
	case len(l.s.Servers) > 0 && voters == 0:
		l.fail(at, "server.N", "every server is an observer", "at least one must be a participant")
	case voters == 1 && len(l.s.Servers) > 1:
		l.warn(at, "server.N", "with 1 voting server none may fail, whatever the number of observers")
	case voters == 2:
		l.warn(at, "server.N", "with 2 voting servers none may fail; 3 tolerate the failure of one")
	case voters > 0 && voters%2 == 0:
		l.warn(at, "server.N", "%d voting servers tolerate no more failures than %d",
			voters, voters-1)
	}
}

func (l *loader) checkTaken(at, key, what string, id int, taken map[string]int) {
	if other, ok := taken[what]; ok && other != id {
		l.fail(at, key, fmt.Sprintf("%s is also that of server.%d", what, other),
			"give every server an address of its own")
	}
	taken[what] = id
}

// resolveMyID finds out which of the servers this is.
func (l *loader) resolveMyID() {
	s := &l.s
	path := filepath.Join(s.DataDir, "myid")
	at := l.where("myid")
	inFile, err := readMyID(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		if s.MyID == noID {
			l.fail(path, "", err.Error(), "")
			return
		}
	case s.MyID == noID:
		s.MyID, at = inFile, path
		l.source["myid"] = path
	case inFile != noID && s.MyID != inFile:
		l.warn(at, "myid", "%d counts, not the %d in %s", s.MyID, inFile, path)
	}
	s.Standalone = s.StandaloneEnabled && len(s.Servers) <= 1
	if s.MyID == noID {
		if !s.Standalone {
			l.fail(path, "", "names no server, or is missing, so this server does not know which of the servers it is",
				l.whichID()+fmt.Sprintf(" > %s; or give --myid or ZK_LITE_MYID", path))
			return
		}
		s.MyID = l.anyID()
	}
	if _, ok := s.Own(); !ok && (len(s.Servers) > 0 || !s.Standalone) {
		l.fail(at, "myid", fmt.Sprintf("%d is not in the list of servers (%s)", s.MyID, l.listed()),
			"add the line server."+strconv.Itoa(s.MyID)+", or correct the id")
	}
}

// whichID tells what to write into myid. It is this machine's id only if that is known: users would paste another
// server's.
func (l *loader) whichID() string {
	var own, all []string
	for _, srv := range l.s.Servers {
		all = append(all, fmt.Sprintf("%d for %s", srv.ID, srv.Host))
		if isThisMachine(srv.Host) {
			own = append(own, strconv.Itoa(srv.ID))
		}
	}
	switch {
	case len(own) == 1:
		return "write its id there, as in: echo " + own[0]
	case len(all) == 0:
		return "write its id there, as in: echo 1"
	}
	return "write the id of this machine's line there (" + strings.Join(all, ", ") + "), as in: echo N"
}

// isThisMachine reports whether a host is this machine's name, with or without its domain, or one of its addresses. It
// asks no DNS.
func isThisMachine(host string) bool {
	host = strings.ToLower(host)
	name, err := os.Hostname()
	name = strings.ToLower(name)
	if host == "localhost" || err == nil && (host == name || strings.HasPrefix(host, name+".")) {
		return true
	}
	ip := net.ParseIP(host)
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	addrs, _ := net.InterfaceAddrs() // or none
	return ip != nil && slices.ContainsFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

// anyID is the first number of the list, and 1 without one.
func (l *loader) anyID() int {
	if len(l.s.Servers) > 0 {
		return l.s.Servers[0].ID
	}
	return 1
}

func (l *loader) listed() string {
	if len(l.s.Servers) == 0 {
		return "which is empty"
	}
	var names []string
	for _, srv := range l.s.Servers {
		names = append(names, strconv.Itoa(srv.ID))
	}
	return strings.Join(names, ", ")
}

func readMyID(path string) (int, error) {
	if info, err := os.Stat(path); err != nil {
		return 0, err
	} else if info.IsDir() {
		return 0, errors.New("is a directory; want a file with this server's id")
	}
	text, err := readBounded(path)
	if err != nil {
		return 0, fmt.Errorf("cannot be read: %w", err)
	}
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
	if line == strconv.Itoa(noID) {
		return noID, nil
	}
	return parseServerID(line)
}

// resolveRole lets the list decide, as ZooKeeper does (setupPeerType), and
// checks the hosts.
func (l *loader) resolveRole() {
	s := &l.s
	own, ok := s.Own()
	if !ok {
		if s.PeerType == Observer {
			l.fail(l.where("peer-type"), "peerType", "an observer has no one to follow",
				"list the servers as server.N=..., or remove peerType")
		}
		return
	}
	if own.Role != s.PeerType && l.given("peer-type") {
		l.warn(l.where("peer-type"), "peerType", "%s counts, which server.%d says in the list",
			own.Role, own.ID)
	}
	s.PeerType = own.Role
	l.source["peer-type"] = l.ownSource(own.ID)
	for _, srv := range s.Servers {
		if srv.ID != own.ID && unspecified(srv.Host) {
			l.fail(l.where("server"), fmt.Sprintf("server.%d", srv.ID),
				fmt.Sprintf("%s is no address at which another server can be reached", srv.Host),
				"only this server's own line may mean all interfaces")
		}
	}
}
