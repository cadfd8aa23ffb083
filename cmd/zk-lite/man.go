package main

import (
	"github.com/spf13/cobra"

	"github.com/zk-lite/zk-lite/cmd/zk-lite/cli/manpage"
)

// manCommand returns the command "man", with which packages make their manual pages.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write the manual pages of all commands",
		Long: `Write a manual page for each command into the directory, from the texts of --help.
Packages have them installed.`,
		Example: "  zk-lite man man1 && man man1/zk-lite-lock.1",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return manpage.WriteAll(args[0], c.Root(), manpage.Source{Version: version, Date: readBuildInfo().built()})
		},
	}
}
