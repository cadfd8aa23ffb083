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
}

// Run runs another command of the program with the server's configuration, and returns what it says.
func (s *Server) Run(command string, flags ...string) (said string, err error) {
	line, err := s.e.program.command(s)
	if err != nil {
		return "", err
	}
	line[1] = command
	c := exec.Command(line[0], append(line[1:], flags...)...)
	c.Dir = s.dir
	out, err := c.CombinedOutput()
	return string(out), err
}
