package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// TestCLI runs the scripts of testdata/script, each in a part of the tree of its
// own, against one server.
func TestCLI(t *testing.T) {
	tier.Seconds(t)
	e := startEnsemble(t)
	server := e.ConnectString()
	t.Run("script", func(t *testing.T) { // returns when all scripts, which run in parallel, have ended
		testscript.Run(t, testscript.Params{
			Dir: filepath.Join("testdata", "script"), Setup: setUp(server), Cmds: commands(server),
			RequireExplicitExec: true, RequireUniqueNames: true,
			UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		})
	})
}
