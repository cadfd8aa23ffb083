// Package cli is the part of the command line that talks to servers: the
// commands that read and write znodes, those that coordinate processes, status,
// and the shell that offers most of them. It has what they share: the flags for
// the connection, connecting, output as text or JSON, exit codes, and errors
// that say what to do next.
//
// A command is a function that makes it of the flags that all have, its globals.
// Code that needs no cobra is in the packages below. The package runs no servers.
//
// # Concurrency
//
// A command runs on one goroutine. Beside it runs, while it has a connection,
// one that ends the command's context when no server has been reached for
// --timeout; withClient waits for it. The shell has one more, which shows
// changes of the connection's state, and one for each watch that has not
// fired; they end with the shell. ui has one while the browser's opener runs.
package cli

import "github.com/spf13/cobra"

// AddCommands adds the commands of this package, the shell, and the commands that run
// servers and tools, to root.
//
// Mistakes in the command line, also of root's other commands, become errors
// with ExitUsage.
func AddCommands(root *cobra.Command, servers, tools []*cobra.Command) {
	root.SetHelpCommandGroupID(groupTools)
	root.SetCompletionCommandGroupID(groupTools)
	root.AddGroup(&cobra.Group{ID: groupServers, Title: "Servers:"})
	addGroup(root, groupServers, servers)
	g := new(globals)
	addData(root, g)
	root.AddGroup(&cobra.Group{ID: groupCoordination, Title: "Coordination:"})
	g.add(root, groupCoordination, lockCommand, electCommand, joinCommand)
	addOperation(root, g)
	g.add(root, groupData, shellCommand, aclCommand)
	g.add(root, groupOperation, memberCommand, transferCommand, drainCommand, upgradeCommand, backupCommand,
		restoreCommand, mirrorCommand, digestCommand, tlsCommand, slowCommand, expiredCommand, topCommand,
		sessionsCommand, watchersCommand, locksCommand,
		revisionsCommand, revertCommand, uiCommand, contextCommand)
	strictCompletion(root)
	strict(root)
	root.AddGroup(&cobra.Group{ID: groupTools, Title: "Tools:"})
	addGroup(root, groupTools, tools)
	root.AddCommand(topics()...)
}

func addGroup(root *cobra.Command, id string, commands []*cobra.Command) {
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// strictCompletion refuses shells that there are no scripts for: cobra's command would
// print its help and end well.
func strictCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find([]string{"completion"})
	if err != nil || c == root {
		return // there are no commands to be completed
	}
	c.Args = noSuchCommand
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}
