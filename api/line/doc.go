// Package line reads the names of znodes that stand in a queue: those of Curator's
// and kazoo's locks and elections, which are ephemeral sequential znodes below one
// parent. It knows names only: it reads no tree and waits for nothing.
package line
