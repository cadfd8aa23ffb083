package cluster

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
)

// zkLite runs the binary that Main has built.
type zkLite struct{}

func (zkLite) command(s *Server) ([]string, error) {
	binary := cmp.Or(s.Binary, os.Getenv(BinaryVariable))
	if binary == "" {
		return nil, fmt.Errorf("%s is not set; the package's TestMain must call cluster.Main",
			BinaryVariable)
	}
	return []string{binary, "server", "--config", s.configFile()}, nil
}

func (zkLite) config(s *Server, set map[string]string) {
	set["admin.enableServer"] = "true"
	set["admin.serverAddress"] = s.host()
	set["admin.serverPort"] = fmt.Sprint(s.httpPort)
	set["autopilot.stableTime"] = "1000"
}

// Recover runs `zk-lite recover` beside the files of a server that is down, and returns what it says.
func (s *Server) Recover(flags ...string) (said string, err error) {
	binary := cmp.Or(s.Binary, os.Getenv(BinaryVariable))
	c := exec.Command(binary, append([]string{"recover", "--config", s.configFile()}, flags...)...)
	c.Dir = s.dir
	out, err := c.CombinedOutput()
	return string(out), err
}
