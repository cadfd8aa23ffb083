package doctor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/zk-lite/zk-lite/app"
	"github.com/zk-lite/zk-lite/app/config"
	"github.com/zk-lite/zk-lite/consensus/storage"
	"github.com/zk-lite/zk-lite/internal/process"
	"github.com/zk-lite/zk-lite/internal/tlsfiles"
)

// settings finds settings that contradict each other, the machine, or what their owner probably wants.
func (d *doctor) settings() {
	s := &d.Settings
	for _, x := range []struct {
		is          bool
		problem, do string
	}{
		{s.PeerTLS.Wanted && s.PeerTLS.Keys.PlainToo,
			"sslQuorum=true with portUnification=true: servers without a certificate are taken, too",
			"remove portUnification when all servers speak TLS"},
		{s.PeerTLS.Wanted && s.PeerTLS.AnyHost,
			"ssl.quorum.hostnameVerification=false: the owner of any certificate may be any server",
			"issue certificates for the hosts of server.N, and remove the key"},
		{len(s.Servers) > 1 && !s.PeerTLS.Files() && s.PeerTLS.Keys.Off,
			"peer.tls=false: anyone who reaches the peer port is a member of the ensemble",
			"remove peer.tls (docs/security.md)"},
		{!s.PeerTLS.Keys.Off && !s.PeerTLS.Files() && s.PeerTLS.Keys.PlainToo,
			"portUnification=true: servers without TLS are taken, too",
			"remove it when all servers have peer.tls=true"},
		{s.SecureClientPort != config.NoPort && s.ClientPort != config.NoPort && !loopback(s.ClientPortAddress),
			"there is secureClientPort, and clientPort takes clients without TLS from other machines",
			"remove clientPort when all clients speak TLS, or set clientPortAddress=127.0.0.1"},
		{s.AdminEnabled && !loopback(s.AdminAddress) && !s.AdminForceHTTPS,
			"the HTTP port is open to other machines without TLS: passwords and tokens can be read on the way",
			"set admin.forceHttps=true, or admin.serverAddress=127.0.0.1"},
		{s.Auth.SkipACL, "skipACL=yes: every client may read and change everything", "remove it"},
		{s.Storage.Kind == storage.LogBolt, "log.store=boltdb is deprecated: it does not notice damaged entries",
			"replace this server by one with log.store=raftlog (docs/operations.md)"},
		{s.Server.MinSessionTimeout < 2*s.Consensus.ElectionTimeout,
			fmt.Sprintf("minSessionTimeout is %v, and an election takes %v and more: sessions may expire meanwhile",
				s.Server.MinSessionTimeout, s.Consensus.ElectionTimeout),
			"raise minSessionTimeout or tickTime, or lower raft.electionTimeout"},
		{s.LeaderContactLimit() < 2*s.Consensus.ElectionTimeout,
			fmt.Sprintf("syncLimit x tickTime is %v, and an election takes %v and more: clients are let go meanwhile",
				s.LeaderContactLimit(), s.Consensus.ElectionTimeout), "raise syncLimit or tickTime"},
		{s.ZooKeeper.MaxConnections > 0 && s.ZooKeeper.MaxPerAddress > s.ZooKeeper.MaxConnections,
			fmt.Sprintf("maxClientCnxns=%d has no effect: maxCnxns=%d is less",
				s.ZooKeeper.MaxPerAddress, s.ZooKeeper.MaxConnections),
			"lower maxClientCnxns, so that one address cannot take all connections"},
	} {
		if x.is {
			d.warn("settings", x.problem, x.do)
		}
	}
	d.descriptors()
	d.memory()
}

// fewDescriptors is what system managers give a service that asks for none.
const fewDescriptors = 4096

func (d *doctor) descriptors() {
	limit, err := process.MaxDescriptors()
	if err != nil {
		return // not known on this system
	}
	most := process.MostClients(limit)
	const do = "raise the limit of open files (LimitNOFILE of the unit, or ulimit -n)"
	switch want := d.Settings.ZooKeeper.MaxConnections; {
	case want > most:
		d.warn("descriptors", fmt.Sprintf("maxCnxns=%d, but the limit of %d open files leaves clients %d",
			want, limit, most), do)
	case limit < fewDescriptors:
		d.warn("descriptors", fmt.Sprintf("the limit of %d open files leaves clients %d", limit, most), do)
	}
}

// memory compares what the settings allow with what there is. A full tree needs as much again for what the collector
// has yet to find.
func (d *doctor) memory() {
	const program, little, mib = 32 << 20, 128 << 20, 1 << 20
	s := &d.Settings
	most := program + 2*s.Consensus.TreeLimit + int64(s.Consensus.MaxPendingBytes) + int64(s.ZooKeeper.PartialBytes)
	switch {
	case d.Memory == 0:
	case most > d.Memory:
		d.fail("memory", fmt.Sprintf("limits.treeBytes, limits.pendingBytes and largeRequestMaxBytes allow %d "+
			"MiB, and the machine or control group has %d MiB: the server would be killed", most/mib, d.Memory/mib),
			"remove limits.treeBytes, which then follows from the memory, or lower it; or give more memory")
	case d.Memory < little:
		d.warn("memory", fmt.Sprintf("the server may use %d MiB", d.Memory/mib), "give it 128 MiB or more")
	}
}

// distant reports whether another server is on another machine.
func (d *doctor) distant() bool {
	for _, srv := range d.Settings.Servers {
		if srv.ID != d.Settings.MyID && !loopback(srv.Host) {
			return true
		}
	}
	return false
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// certificates looks at those that can be read; start has found the others.
func (d *doctor) certificates() {
	own, member := d.Settings.Own()
	if files, err := app.ClientTLS(&d.Settings); err == nil && files != nil {
		d.expiry("ssl.keyStore.location", files)
		if leaf := files.Leaf(); leaf != nil && member {
			if err := leaf.VerifyHostname(own.Host); err != nil {
				d.warn("certificates", fmt.Sprintf("ssl.keyStore.location: the certificate does not name %s, "+
					"the host of server.%d: %v", own.Host, own.ID, err),
					"issue one that names every host by which clients call this server")
			}
		}
		d.key("ssl.keyStore.location", d.Settings.TLS.Key.Location)
	}
	if files, err := app.PeerTLS(&d.Settings); err == nil && files != nil {
		d.expiry("ssl.quorum.keyStore.location", files)
		if err := files.VerifyOwn(own.Host); err != nil {
			d.fail("certificates", "another server with the same settings would refuse this one: "+err.Error(),
				"issue a certificate for "+own.Host+", for servers and clients, by an authority in "+
					"ssl.quorum.trustStore.location (zk-lite tls issue)")
		}
		d.key("ssl.quorum.keyStore.location", d.Settings.PeerTLS.Key.Location)
	}
}

func (d *doctor) expiry(setting string, files *tlsfiles.Files) {
	leaf := files.Leaf()
	if leaf == nil {
		return
	}
	const do = "issue a new one, in place: a running server follows its files"
	until := files.Expires()
	switch now := time.Now(); {
	case now.Before(leaf.NotBefore):
		d.fail("certificates", fmt.Sprintf("%s: the certificate is not good before %s", setting,
			leaf.NotBefore.UTC().Format(time.RFC3339)), "correct this machine's clock, or issue a new one")
	case now.After(until):
		d.fail("certificates", fmt.Sprintf("%s: the certificate expired at %s", setting,
			until.UTC().Format(time.RFC3339)), do)
	case until.Sub(now) < d.Limits.Expiry:
		d.warn("certificates", fmt.Sprintf("%s: the certificate expires at %s", setting,
			until.UTC().Format(time.RFC3339)), do)
	}
}

// key warns of a private key that others can read.
func (d *doctor) key(setting, path string) {
	info, err := os.Stat(path)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			d.warn("modes", setting+": "+err.Error(), "let this server's user read it")
		}
		return
	}
	if info.Mode().Perm()&0o007 != 0 {
		d.warn("modes", fmt.Sprintf("%s: every user of this machine can read %s, which has a private key",
			setting, path), "chmod o= "+path)
	}
}
