package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command has a page and is in the completion scripts, which ask the program itself.
func TestMan_EveryCommandHasAPage(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("zk-lite", "man", dir).CombinedOutput(); err != nil {
		t.Fatalf("zk-lite man failed: %v: %s", err, out)
	}
	root := rootCommand()
	root.InitDefaultHelpCmd()
	pages := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		pages++
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		for _, section := range []string{".TH ", ".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS"} {
			if !strings.Contains(string(page), section) {
				t.Errorf("the page of %s has no %q", c.CommandPath(), section)
			}
		}
		if c.HasParent() {
			args := strings.Fields(c.CommandPath())[1:]
			out, err := exec.Command("zk-lite", append([]string{"__complete"}, args...)...).Output()
			if last := args[len(args)-1]; err != nil || !strings.Contains("\n"+string(out), "\n"+last+"\t") {
				t.Errorf("%s is not completed: %v, %q", c.CommandPath(), err, out)
			}
		}
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() {
				check(below)
			}
		}
	}
	check(root)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != pages || pages < 40 {
		t.Errorf("%d files for %d commands, %v", len(files), pages, err)
	}
}
