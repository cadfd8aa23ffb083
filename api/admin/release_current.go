//go:build !nextrelease

package admin

import "github.com/zk-lite/zk-lite/api/rest"

// releaseRoutes are what the next release adds, in tests of upgrades.
func releaseRoutes() []rest.Route { return nil }
