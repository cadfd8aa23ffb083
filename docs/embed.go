// Package docs has the pages that are part of the program, for `zk-lite docs`: those for people who run zk-lite or
// write programs for it. With what shows them they make the program larger by 1 MiB at most, so pictures, references
// and what is about the source code are left out. `make site` has all.
package docs

import "embed"

// Files has the pages, beginning with README.md.
//
//go:embed README.md cli.md client.md compatibility.md configuration.md cookbook.md dashboard.md deployment.md
//go:embed limits.md migration.md monitoring.md operations.md protocol.md quickstart.md recipes.md security.md sizing.md
//go:embed troubleshooting.md when-not.md
var Files embed.FS
