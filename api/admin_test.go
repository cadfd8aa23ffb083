package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zk-lite/zk-lite/api"
	"github.com/zk-lite/zk-lite/api/admin"
	wire "github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

func TestCommands_List(t *testing.T) {
	tier.Seconds(t)
	c := operator(t, shared().urls[0])
	a := c.get("/commands").want(200).contains(`<a href="/commands/monitor">monitor</a>`)
	if resp, err := http.Get(c.url + "/commands/"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("/commands/: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	reserved := map[string]bool{ // for operators, or with a parameter
		"/commands/hash": true, "/commands/connection_stat_reset": true,
		"/commands/stat_reset": true, "/commands/set_trace_mask": true,
	}
	for link := range strings.SplitSeq(string(a.body), "<a href=\"") {
		if target, _, ok := strings.Cut(link, "\""); ok && !reserved[target] {
			c.get(target).want(200).has("command", strings.TrimPrefix(target, "/commands/")).has("error", nil)
		}
	}
	u := c.get("/commands/snap").want(404).has("error", "Unknown command: snap").has("command", "snap")
	if known := u.field("commands").([]any); !slices.Contains(known, any("mntr")) || len(known) < 20 {
		t.Errorf("known commands are %v, want mntr among at least 20", known)
	}
}

func TestCommands_TellTheState(t *testing.T) {
	tier.Seconds(t)
	e := shared()
	i := e.leading(t)
	c := newClient(t, e.urls[i])
	for _, name := range []string{"monitor", "mntr"} {
		a := c.get("/commands/"+name).want(200).has("command", "monitor").has("server_state", "leader")
		a.has("quorum_size", 3).contains("3.9.5-zk-lite-test, built on ")
		if n := a.field("znode_count").(float64); n < 5 {
			t.Errorf("%v znodes", n)
		}
	}
	s := c.get("/commands/srvr").want(200).has("command", "server_stats").has("read_only", false)
	s.has("server_stats.server_state", "leader").has("server_stats.provider_null", false)
	s.text("version")
	c.with(basic("super:secret")).get("/commands/stat").want(200).has("command", "stats")
	c.get("/commands/isro").want(200).has("read_only", false)
	c.get("/commands/lead").want(200).has("is_leader", true).has("leader_id", i+1).
		has("leader_ip", "127.0.0.1")
	newClient(t, e.urls[(i+1)%3]).get("/commands/leader").has("is_leader", false).
		has("leader_id", i+1)
	z := c.get("/commands/zabstate").want(200).has("zabstate", "broadcast").has("voting", true)
	z.has("myid", i+1)
	if !strings.HasPrefix(z.text("last_zxid"), fmt.Sprintf("0x%x", int(z.field("zab_epoch").(float64)))) {
		t.Errorf("last_zxid does not begin with the epoch: %s", z.body)
	}
	p := e.settings[0].Servers[0]
	v := c.get("/commands/voting_view").want(200).has("current_config.1.learner_type", "participant")
	v.has("current_config.1.server_addresses.0", fmt.Sprintf("127.0.0.1:%d", p.PeerPort))
	v.has("current_config.1.election_addresses.0", fmt.Sprintf("127.0.0.1:%d", p.ElectionPort))
	v.has("current_config.1.client_address", fmt.Sprintf("127.0.0.1:%d", p.ClientPort))
	c.get("/commands/conf").want(200).has("tick_time", 100).has("server_id", i+1).
		has("min_session_timeout", int(minTimeout.Milliseconds())).has("max_session_timeout", 60000)
	c.get("/commands/env").want(200).has("command", "environment").contains("go.version")
}

func TestCommands_Watches(t *testing.T) {
	e := fresh(t, 1)
	zk, err := wire.Connect(t.Context(), fmt.Sprintf("127.0.0.1:%d", e.settings[0].ClientPort))
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	for _, path := range []string{"/a", "/b"} {
		if _, _, _, err := zk.ExistsW(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	c := operator(t, e.urls[0])
	id := int64(zk.Session().ID)
	c.get("/commands/wchs").want(200).has("command", "watch_summary").has("num_total_watches", 2).
		has("num_paths", 2).has("num_connections", 1)
	paths := c.get("/commands/wchc").want(200).
		field(fmt.Sprintf("session_id_to_watched_paths.%d", id)).([]any)
	if len(paths) != 2 || !slices.Contains(paths, any("/a")) || !slices.Contains(paths, any("/b")) {
		t.Errorf("watched paths are %v, want /a and /b", paths)
	}
	p := c.get("/commands/wchp").want(200)
	// JSON's numbers lose the last digits of an int64; the text has them.
	p.contains(fmt.Sprintf(`"/a":[%d]`, id)).contains(fmt.Sprintf(`"/b":[%d]`, id))
	if all, err := parseMetrics(c.get("/metrics").body); err != nil || all["watch_count"].value != 2 {
		t.Errorf("%v %v", all["watch_count"], err)
	}
}

// The clients that are shed keep their sessions, at this server or another.
func TestCommands_Shed(t *testing.T) {
	e := fresh(t, 1)
	const clients = 4
	var all []*wire.Client
	for range clients {
		zk, err := wire.Connect(t.Context(), fmt.Sprintf("127.0.0.1:%d", e.settings[0].ClientPort))
		if err != nil {
			t.Fatal(err)
		}
		defer zk.Close()
		all = append(all, zk)
	}
	c := operator(t, e.urls[0])
	c.post("/commands/shed", `{"percentage": 0}`).want(200).has("command", "shed_connections").has("error", nil).
		has("connections_shed", 0).has("percentage_requested", 0)
	before := c.get("/commands/cons").body
	c.post("/commands/shed_connections", `{"percentage": 100}`).want(200).has("connections_shed", clients)
	for _, zk := range all {
		id := zk.Session().ID
		if _, _, err := zk.Exists(t.Context(), "/"); err != nil || zk.Session().ID != id {
			t.Errorf("a client that was shed: %v, session %s after %s", err, zk.Session().ID, id)
		}
	}
	if after := c.get("/commands/cons").body; string(after) == string(before) {
		t.Errorf("no client was disconnected: %s", after)
	}
	c.post("/commands/shed", "").problem(400, "BADARGUMENTS")
	c.post("/commands/shed", `{"percentage": 101}`).problem(400, "BADARGUMENTS")
	c.post("/commands/ruok", "").want(404).has("commands.0", "shed_connections")
	newClient(t, e.urls[0]).post("/commands/shed", `{"percentage": 100}`).problem(401, "NOAUTH")
}

// AdminServer's clients send user and password in the clear.
func TestCommands_AuthorizationAsForAdminServer(t *testing.T) {
	c := newClient(t, shared().urls[0])
	c.with("Authorization: digest super:secret").get("/commands/hash").want(200).has("error", nil)
	c.with("Authorization: digest super:wrong").get("/commands/hash").problem(403, "NOAUTH")
	c.with("Authorization: ip").get("/commands/ruok").want(200)
	c.with(`Authorization: Digest username="super", realm="x:y"`).get("/v1/znodes/").problem(401, "AUTHFAILED")
}

func TestCommands_Dump(t *testing.T) {
	url := shared().urls[0]
	a := newCoordinator(t, url)
	r := root(t, a.client)
	path := a.post(r+"/e?mode=ephemeral", "").want(201).text("path")
	var id int64
	if _, err := fmt.Sscanf(a.id, "0x%x", &id); err != nil {
		t.Fatal(err)
	}
	d := operator(t, url).get("/commands/dump").want(200)
	d.has(fmt.Sprintf("session_id_to_ephemeral_paths.%d.0", id), path)
}

func TestCommands_Hash(t *testing.T) {
	e := shared()
	newClient(t, e.urls[0]).get("/commands/hash").problem(401, "NOAUTH")
	eventually(t, "two servers at the same zxid have the same digest", func() bool {
		a := operator(t, e.urls[0]).get("/commands/hash")
		b := operator(t, e.urls[1]).get("/commands/hash")
		if a.field("digests.0.zxid") != b.field("digests.0.zxid") {
			return false
		}
		return a.field("digests.0.digest") == b.field("digests.0.digest")
	})
}

func TestCommands_NotServing(t *testing.T) {
	_, url := serveReplaced(t, shared().nodes[0], faulty{Server: shared().nodes[0].Server(), serving: func() bool { return false }},
		func(c *api.Config) {
			c.Admin.Settings = &admin.Settings{ClientPort: func() int { return 2181 }, DataDir: "/var/lib/x"}
		})
	c := newClient(t, url)
	c.get("/commands/ruok").want(200).
		has("error", "This ZooKeeper instance is not currently serving requests")
	c.get("/commands/mntr").want(200).has("error", nil)
	_, url = serve(t, shared().nodes[0],
		func(c *api.Config) {
			c.Admin.Settings = &admin.Settings{ClientPort: func() int { return 2181 }, DataDir: "/var/lib/x"}
		})
	newClient(t, url).get("/commands/config").has("client_port", 2181).has("data_dir", "/var/lib/x")
}

func TestCommands_StandsAlone(t *testing.T) {
	c := newClient(t, fresh(t, 1).urls[0])
	c.get("/commands/leader").want(200).has("error", "server is not initialized")
	c.get("/commands/zabstate").want(200).has("voting", false).has("zabstate", "")
	c.get("/commands/srvr").want(200).has("server_stats.server_state", "standalone")
}

// The members that existing tools read have ZooKeeper's names, and count the ZooKeeper port's connections.
func TestCommands_Connections(t *testing.T) {
	e := fresh(t, 1)
	zk, err := wire.Connect(t.Context(), fmt.Sprintf("127.0.0.1:%d", e.settings[0].ClientPort),
		wire.WithSessionTimeout(time.Minute)) // which pings seldom
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	if _, _, err := zk.Get(t.Context(), "/zookeeper"); err != nil {
		t.Fatal(err)
	}
	c, op := newClient(t, e.urls[0]), operator(t, e.urls[0])
	keys := func(v any) []string { return slices.Sorted(maps.Keys(v.(map[string]any))) }
	brief := []string{"interest_ops", "outstanding_requests", "packets_received", "packets_sent",
		"remote_socket_address"}
	full := append([]string{"avg_latency", "established", "last_cxid", "last_latency",
		"last_operation", "last_response_time", "last_zxid", "max_latency", "min_latency",
		"session_id", "session_timeout"}, brief...)
	slices.Sort(full)
	a := op.get("/commands/cons").want(200).has("command", "connections")
	if got := keys(a.field("connections.0")); !slices.Equal(got, full) {
		t.Errorf("%v, want %v", got, full)
	}
	a.has("connections.0.last_operation", "GETD").contains(fmt.Sprintf(`"session_id":%d,`, int64(zk.Session().ID)))
	if len(a.field("secure_connections").([]any)) != 0 || len(a.field("connections").([]any)) != 1 {
		t.Errorf("want one connection, and none that is secure: %s", a.body)
	}
	if n := a.field("connections.0.packets_received").(float64); n < 2 {
		t.Errorf("%v packets", n)
	}
	a = op.get("/commands/stats").want(200).has("command", "stats").has("read_only", false)
	if got := keys(a.field("connections.0")); !slices.Equal(got, brief) {
		t.Errorf("%v, want %v", got, brief)
	}
	for _, field := range []string{"server_stats.packets_received", "server_stats.packets_sent",
		"server_stats.max_latency", "server_stats.avg_latency", "server_stats.min_latency",
		"server_stats.outstanding_requests", "server_stats.auth_failed_count",
		"server_stats.data_dir_size", "server_stats.log_dir_size",
		"server_stats.client_response_stats.last_buffer_size",
		"client_response.min_buffer_size", "client_response.max_buffer_size"} {
		if _, ok := a.field(field).(float64); !ok {
			t.Errorf("%s is %v, want a number", field, a.field(field))
		}
	}
	a.has("server_stats.num_alive_client_connections", 1)
	if n := a.field("client_response.max_buffer_size").(float64); n < 20 {
		t.Errorf("the largest reply has %v bytes", n)
	}
	m := c.get("/commands/mntr").want(200).has("num_alive_connections", 1).has("disk_fault", 0)
	if m.field("packets_received").(float64) < 2 || m.field("open_file_descriptor_count").(float64) < 3 {
		t.Errorf("want at least 2 packets received and 3 open files: %s", m.body)
	}
	all, err := parseMetrics(c.get("/metrics").body)
	if err != nil || all["packets_sent"].value < 2 || all["packets_sent"].kind != "counter" {
		t.Errorf("%v %v", all["packets_sent"], err)
	}
	c.get("/commands/dirs").want(200).has("command", "dirs")
	if c.get("/commands/dirs").field("datadir_size").(float64) < 100 {
		t.Error("an empty data directory")
	}
	// What changes something is for operators.
	for _, name := range []string{"crst", "srst", "stmk"} {
		c.get("/commands/"+name).problem(401, "NOAUTH")
	}
	op.get("/commands/crst").want(200).has("command", "connection_stat_reset").has("error", nil)
	a = op.get("/commands/cons").has("connections.0.packets_received", 0).has("connections.0.last_cxid", -1)
	a.has("connections.0.last_zxid", -1).has("connections.0.last_operation", "NA")
	op.get("/commands/srst").want(200).has("command", "stat_reset").has("error", nil)
	a = c.get("/commands/srvr").has("server_stats.packets_received", 0).has("client_response.last_buffer_size", -1)
	a.has("server_stats.num_alive_client_connections", 1)
	op.get("/commands/stmk").want(200).contains("requires long traceMask")
	op.get("/commands/stmk?traceMask=x").want(200).contains("got x")
	op.get("/commands/stmk?traceMask=17").want(200).has("tracemask", 17)
	c.get("/commands/gtmk").want(200).has("command", "get_trace_mask").has("tracemask", 17)
	c.get("/commands/obsr").want(200).has("synced_observers", 0)
	// The leader knows when sessions expire.
	d := op.get("/commands/dump").want(200)
	if len(keys(d.field("expiry_time_to_session_ids"))) != 1 {
		t.Errorf("want one time at which sessions expire: %s", d.body)
	}
	d.contains(fmt.Sprintf("[%d]", int64(zk.Session().ID)))
}
