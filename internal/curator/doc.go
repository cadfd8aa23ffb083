// Package curator reads and makes the names of the znodes of Curator's and kazoo's
// queues: locks and elections, whose waiters are ephemeral sequential znodes below one
// parent. The HTTP API and the recipes share it, so that their clients stand in the same
// queue. It handles names only: it reads no tree and waits for nothing.
package curator
