package cluster

import (
	"cmp"
	"fmt"
	"os"
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
