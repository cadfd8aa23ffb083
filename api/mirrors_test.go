package api_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// A mirror is begun and ended at any server, and the leader says how it stands.
func TestMirrors_BeginAndEnd(t *testing.T) {
	e := fresh(t, 3, patient)
	origin, err := net.Listen("tcp", "127.0.0.1:0") // silent: no ZooKeeper answers there
	if err != nil {
		t.Fatal(err)
	}
	defer origin.Close()
	leader := e.leading(t)
	c := operator(t, e.urls[(leader+1)%3])
	c.get("/v1/mirror").want(200).has("state", "off").has("server", leader+1)
	c.delete("/v1/mirror").want(404).contains("POST /v1/mirror begins one")
	from := fmt.Sprintf(`{"from":["%s"]}`, origin.Addr())
	for body, param := range map[string]string{
		`{}`: "from", `{"from":[]}`: "from", `{"from":["zk1"]}`: "from", `{"from":["zk1:2888"],"again":1}`: "body",
	} {
		c.post("/v1/mirror", body).problem(400, "BADARGUMENTS").has("parameter", param)
	}

	c.post("/v1/mirror", from).want(200).has("state", "waiting").has("from.0", origin.Addr().String()).has("loaded", false)
	c.post("/v1/mirror", from).want(200)
	c.post("/v1/mirror", strings.Repeat(" ", 5000)).want(413)
	c.post("/v1/mirror", `{"from":["zk1:2888"]}`).want(409).contains("another ensemble is mirrored: " + origin.Addr().String())
	for _, url := range e.urls {
		eventually(t, "the leader's answer", func() bool {
			a := c.at(url).get("/v1/mirror").want(200)
			return a.text("state") == "connecting" && a.field("origin.connections") == 0.0
		})
	}
	c.get("/v1/cluster").want(200).has("mirror.state", "waiting")
	metrics := c.get("/metrics").want(200)
	metrics.contains("\nmirror_on 1\n").contains("\nmirror_following 0\n")
	c.get("/v1/znodes/").want(200)
	c.post("/v1/mirror", strings.Replace(from, "}", `,"restart":true}`, 1)).want(200).has("loads", 0)

	c.delete("/v1/mirror").want(204)
	eventually(t, "the leader has applied the end, too", func() bool {
		return c.get("/v1/mirror").want(200).text("state") == "off"
	})
	c.post("/v1/znodes/a", "").want(201)
	c.post("/v1/mirror", from).problem(409, "NOTEMPTY").contains("mirror into a new ensemble")
	newClient(t, e.urls[0]).get("/v1/mirror").want(401)
}
