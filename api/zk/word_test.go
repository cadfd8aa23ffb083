package zk_test

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api/zk"
	"github.com/zk-lite/zk-lite/consensus"
	"github.com/zk-lite/zk-lite/internal/wire"
	"github.com/zk-lite/zk-lite/znode"
)

// word sends a four-letter word and returns the whole answer.
func (k *kit) word(w string) string {
	k.t.Helper()
	c := k.dial()
	defer c.c.Close()
	c.raw([]byte(w))
	b, err := io.ReadAll(c.c)
	if err != nil {
		k.t.Fatalf("%s: %v", w, err)
	}
	return string(b)
}

func (k *kit) matches(word string, lines ...string) {
	k.t.Helper()
	have := k.word(word)
	re := regexp.MustCompile("^" + strings.Join(lines, "\n") + "$")
	if !re.MatchString(have) {
		k.t.Errorf("%s:\n%s\nwant\n%s", word, have, strings.Join(lines, "\n"))
	}
}

const client1 = ` /127\.0\.0\.1:\d+\[1\]\(queued=0,recved=\d+,sent=\d+\)`

// The shapes are those of ZooKeeper's own FourLetterWordsTest.
func serverLines(mode string) []string {
	return []string{
		`Latency min/avg/max: \d+/[0-9]+\.[0-9]+/\d+`, `Received: \d+`, `Sent: \d+`,
		`Connections: [1-9]`, `Outstanding: 0`, `Zxid: 0x[\da-f]+`, `Mode: ` + mode, `Node count: 6`,
	}
}

const versionLine = `Zookeeper version: 3\.9\.\d+-zk-lite-0\.1\.0, built on 01/01/1970 00:00 GMT`

func TestWord_SrvrAndStat(t *testing.T) {
	k := start(t)
	c := k.connect()
	c.create("/a", "")
	k.matches("srvr", append(append([]string{versionLine}, serverLines("standalone")...), "")...)
	stat := append([]string{versionLine, "Clients:", client1, `(?:` + client1 + "\n)*" +
		` /127\.0\.0\.1:\d+\[0\]\(queued=0,recved=1,sent=0\)`, ""}, serverLines("standalone")...)
	k.matches("stat", append(stat, "")...)
	if line, _, _ := strings.Cut(k.word("srvr"), "\n"); !regexp.MustCompile(
		`^.*\s\d+\.\d+\.\d+-.*$`).MatchString(line) {
		t.Errorf("%q is not what FourLetterWordsTest wants", line)
	}
	k.log.setStatus(func(s *consensus.Status) { s.Role = consensus.RoleLeader })
	k.matches("srvr", append(append([]string{versionLine}, serverLines("leader")...),
		`Proposal sizes last/min/max: -1/-1/-1`, "")...)
}

// "built on unknown" was no date: go-zookeeper's FLWSrvr failed. It wants the form of ZooKeeper 3.4, which
// kazoo, Curator and exporters of metrics take as well.
func TestWord_Srvr_BuiltOnADate(t *testing.T) {
	built := time.Date(2026, 11, 24, 2, 16, 9, 0, time.UTC)
	for _, date := range []string{zk.UnknownBuildDate, built.Format(zk.BuildDateFormat)} {
		k := start(t, func(_ *serverConfig, z *zkConfig) { z.BuildDate = date })
		line := regexp.MustCompile(`\AZookeeper version: ([\w.-]+), built on (\d\d/\d\d/\d{4} \d\d:\d\d \w+)\n`)
		m := line.FindStringSubmatch(k.word("srvr"))
		if m == nil {
			t.Fatalf("srvr begins with %.80q", k.word("srvr"))
		}
		if got, err := time.Parse("01/02/2006 15:04 MST", m[2]); err != nil || got.Format(zk.BuildDateFormat) != date {
			t.Errorf("%q is %v, %v", m[2], got, err)
		}
	}
}

// srvr could report a request as outstanding after its client had the reply.
func TestWord_Srvr_AnsweredRequestIsNotOutstanding(t *testing.T) {
	k := start(t)
	c := k.connect()
	for range 300 {
		c.reply(c.send(wire.OpSync, &wire.SyncRequest{Path: "/"}), wire.OpSync)
		if out := k.word("srvr"); !strings.Contains(out, "Outstanding: 0\n") {
			t.Fatalf("srvr: want Outstanding: 0, got %s", out)
		}
	}
}

func TestWord_Latency_IsMeasured(t *testing.T) {
	k := start(t)
	c := k.connect()
	release := k.log.block()
	xid := c.send(wire.OpSync, &wire.SyncRequest{Path: "/"})
	k.eventually("the request to wait", func() bool {
		return strings.Contains(k.word("mntr"), "zk_outstanding_requests\t1\n")
	})
	started := time.Now()
	for time.Since(started) < 20*time.Millisecond {
		k.word("ruok")
	}
	release()
	c.reply(xid, wire.OpSync)
	k.eventually("the request to be done", func() bool {
		return strings.Contains(k.word("mntr"), "zk_outstanding_requests\t0\n")
	})
	if out := k.word("mntr"); strings.Contains(out, "zk_max_latency\t0\n") {
		t.Errorf("mntr: want a zk_max_latency above 0, got %s", out)
	}
	if s := k.word("srst"); s != "Server stats reset.\n" {
		t.Errorf("srst: got %q, want that the server's statistics are reset", s)
	}
	if out := k.word("mntr"); !strings.Contains(out, "zk_max_latency\t0\n") {
		t.Errorf("mntr: want zk_max_latency 0, got %s", out)
	}
}

func TestWord_Cons(t *testing.T) {
	k := start(t)
	c := k.connect()
	c.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/"})
	k.matches("cons",
		` /127\.0\.0\.1:\d+\[1\]\(queued=0,recved=2,sent=2,sid=`+c.id.String()+
			`,lop=GETD,est=\d{13},to=9000,lcxid=0x1,lzxid=0x[\da-f]+,lresp=\d{13},llat=\d+,`+
			`minlat=\d+,avglat=\d+,maxlat=\d+\)`,
		` /127\.0\.0\.1:\d+\[0\]\(queued=0,recved=1,sent=0\)`, "", "")
	if s := k.word("crst"); s != "Connection stats reset.\n" {
		t.Errorf("crst: got %q, want that the connections' statistics are reset", s)
	}
	if out := k.word("cons"); !strings.Contains(out, "[1](queued=0,recved=0,sent=0,sid=") {
		t.Errorf("cons: want a connection with no requests, got %s", out)
	}
}

func TestWord_Mntr(t *testing.T) {
	k := start(t, func(_ *serverConfig, z *zkConfig) {
		z.Metrics = func(emit func(string, any)) { emit("log_fsyncs_total", 7) }
	})
	c := k.connect()
	c.want(znode.OK, wire.OpCreate, create("/e", "12345", znode.Ephemeral))
	c.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/e", Watch: true})
	metrics := func() map[string]string {
		m := map[string]string{}
		for line := range strings.Lines(k.word("mntr")) {
			key, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if !found || !strings.HasPrefix(key, "zk_") || m[key] != "" {
				t.Errorf("line %q", line)
			}
			m[key] = value
		}
		return m
	}
	m := metrics()
	for key, want := range map[string]string{
		"zk_version": versionLine[len("Zookeeper version: "):], "zk_server_state": "standalone",
		"zk_avg_latency": `\d+\.\d+`, "zk_min_latency": `\d+`, "zk_max_latency": `\d+`,
		"zk_packets_received": `4`, "zk_packets_sent": `3`, "zk_num_alive_connections": `2`,
		"zk_outstanding_requests": `0`, "zk_znode_count": `6`, "zk_watch_count": `1`,
		"zk_ephemerals_count": `1`, "zk_approximate_data_size": `\d+`, "zk_uptime": `\d+`,
		"zk_open_file_descriptor_count": `[1-9]\d*`, "zk_max_file_descriptor_count": `[1-9]\d*`,
		"zk_global_sessions": `1`, "zk_local_sessions": `0`, "zk_log_fsyncs_total": `7`,
		"zk_bytes_received_count": `\d{3}`, "zk_response_bytes": `\d{3}`,
		"zk_connection_rejected": `0`, "zk_auth_failed_count": `0`, "zk_disk_fault": `0`,
		"zk_last_client_response_size": `\d+`, "zk_min_client_response_size": `\d+`,
		"zk_max_client_response_size": `\d+`,
	} {
		if !regexp.MustCompile("^" + want + "$").MatchString(m[key]) {
			t.Errorf("%s = %q, want %s", key, m[key], want)
		}
	}
	k.log.setStatus(func(s *consensus.Status) {
		s.Role, s.Voters, s.Followers, s.Observers = consensus.RoleLeader, 3, 2, 1
	})
	m = metrics()
	for key, want := range map[string]string{
		"zk_server_state": "leader", "zk_peer_state": "leading - broadcast", "zk_quorum_size": "3",
		"zk_learners": "3", "zk_synced_followers": "2", "zk_synced_observers": "1",
		"zk_synced_non_voting_followers": "0", "zk_pending_syncs": "0",
	} {
		if m[key] != want {
			t.Errorf("%s = %q, want %q", key, m[key], want)
		}
	}
	k.log.setStatus(func(s *consensus.Status) {
		s.Role, s.DiskFault = consensus.RoleFollower, "no space left on device"
	})
	if m = metrics(); m["zk_peer_state"] != "following - broadcast" || m["zk_learners"] != "" ||
		m["zk_disk_fault"] != "1" {
		t.Errorf("mntr of a follower with a disk fault: zk_peer_state %q, zk_learners %q, zk_disk_fault %q",
			m["zk_peer_state"], m["zk_learners"], m["zk_disk_fault"])
	}
}

func TestWord_Watches(t *testing.T) {
	k := start(t)
	c := k.connect()
	if s := k.word("wchs"); s != "0 connections watching 0 paths\nTotal watches:0\n" {
		t.Errorf("wchs: got %q, want no connection, path or watch", s)
	}
	c.want(znode.OK, wire.OpGetData, &wire.GetDataRequest{Path: "/", Watch: true})
	c.want(znode.ErrNoNode, wire.OpExists, &wire.ExistsRequest{Path: "/b", Watch: true})
	c.want(znode.OK, wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/", Watch: true}) // 72.
	id := c.id.String()
	for word, want := range map[string]string{
		"wchs": "1 connections watching 2 paths\nTotal watches:2\n",
		"wchc": id + "\n\t/\n\t/b\n\n",
		"wchp": "/\n\t" + id + "\n/b\n\t" + id + "\n\n",
	} {
		if have := k.word(word); have != want {
			t.Errorf("%s: %q, want %q", word, have, want)
		}
	}
	if out := k.word("mntr"); !strings.Contains(out, "zk_watch_count\t3\n") {
		t.Errorf("mntr: want zk_watch_count 3, got %s", out)
	}
}

func TestWord_Dump(t *testing.T) {
	k := start(t)
	c := k.connect()
	c.want(znode.OK, wire.OpCreate, create("/e", "", znode.Ephemeral))
	id := c.id.String()
	k.matches("dump", "SessionTracker dump:", `Global Sessions\(1\):`, id+"\t9000ms",
		"ephemeral nodes dump:", `Sessions with Ephemerals \(1\):`, id+":", "\t/e",
		"Connections dump:", `Connections Sets \(1\)/\(2\):`,
		`	ip: /127\.0\.0\.1:\d+ sessionId: `+id, `	ip: /127\.0\.0\.1:\d+ sessionId: 0x0`, "")
}

func TestWord_ConfDirsEnvi(t *testing.T) {
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "x"), make([]byte, 1234), 0o600); err != nil {
		t.Fatal(err)
	}
	k := start(t, func(_ *serverConfig, z *zkConfig) {
		z.MaxPerAddress = 60
		z.Settings = zk.Settings{ClientPort: func() int { return 2181 }, SecureClientPort: -1, DataDir: data, ListenBacklog: -1,
			InitLimit: 10, SyncLimit: 5, ElectionPort: 3888, QuorumPort: 2888}
	})
	lines := []string{"clientPort=2181", "secureClientPort=-1", "dataDir=" + data, "dataDirSize=1234",
		"dataLogDir=" + data, "dataLogSize=1234", "tickTime=100", "maxClientCnxns=60",
		"minSessionTimeout=200", "maxSessionTimeout=40000", "clientPortListenBacklog=-1", "serverId=1"}
	k.matches("conf", append(lines, "")...)
	k.matches("dirs", "datadir_size: 1234", "logdir_size: 1234", "")
	k.log.setStatus(func(s *consensus.Status) { s.Role = consensus.RoleFollower })
	k.matches("conf", append(lines, "initLimit=10", "syncLimit=5", "electionAlg=3",
		"electionPort=3888", "quorumPort=2888", "peerType=0", "membership: ", ".*")...)
	envi := k.word("envi")
	for _, key := range []string{"zookeeper.version=3.9.", "host.name=", "java.version=", "os.name=",
		"os.arch=", "os.version=", "user.name=", "user.home=", "user.dir=", "os.memory.free="} {
		if !strings.HasPrefix(envi, "Environment:\n") || !strings.Contains(envi, "\n"+key) {
			t.Errorf("no %s in %s", key, envi)
		}
	}
}

func TestWord_Small(t *testing.T) {
	k := start(t, func(_ *serverConfig, z *zkConfig) {
		z.Digests = func() []zk.Digest { return []zk.Digest{{Zxid: 0x10000000a, Value: 1<<64 - 1}} }
	})
	for word, want := range map[string]string{
		"ruok": "imok", "isro": "rw", "gtmk": "306", "hash": "10000000a: -1\n",
		"ruok\n": "imok", "\xff\xf4\xff\xfd": "",
	} {
		if have := k.word(word); have != want {
			t.Errorf("%q: %q, want %q", word, have, want)
		}
	}
	if have := k.word("stmk" + string(binary.BigEndian.AppendUint64(nil, 77))); have != "77" {
		t.Errorf("stmk: %q", have)
	}
	if have := k.word("gtmk"); have != "77" {
		t.Errorf("gtmk: %q", have)
	}
}

func TestWord_NotServing(t *testing.T) {
	k := start(t)
	k.log.setStatus(func(s *consensus.Status) { s.Contact = time.Hour })
	const refusal = "This ZooKeeper instance is not currently serving requests\n"
	for word, want := range map[string]string{
		"ruok": "imok", "isro": "null", "gtmk": "306", "srvr": refusal, "stat": refusal,
		"mntr": refusal, "cons": refusal, "conf": refusal, "dump": refusal, "wchs": refusal,
		"dirs": refusal, "srst": refusal, "crst": refusal, "hash": refusal,
	} {
		if have := k.word(word); have != want {
			t.Errorf("%s: %q, want %q", word, have, want)
		}
	}
}

func TestWord_Whitelist(t *testing.T) {
	k := start(t, func(_ *serverConfig, z *zkConfig) { z.Words = []string{" ruok ", ""} })
	for word, want := range map[string]string{
		"ruok": "imok",
		"stat": "stat is not executed because it is not in the whitelist.\n",
		"isro": "isro is not executed because it is not in the whitelist.\n",
	} {
		if have := k.word(word); have != want {
			t.Errorf("%s: %q, want %q", word, have, want)
		}
	}
	if !strings.HasPrefix(k.word("srvr"), "Zookeeper version: ") {
		t.Error("srvr is not answered")
	}
}

// A command counts only as the first bytes of a connection, in one piece or not.
func TestWord_ArrivesInPieces(t *testing.T) {
	k := start(t)
	c := k.dial()
	for _, b := range []byte("ruok") {
		c.raw([]byte{b})
	}
	if b, err := io.ReadAll(c.c); string(b) != "imok" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	d := k.connect()
	d.raw([]byte("ruok")) // now a length out of range
	d.closed()
}
