package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/zk-lite/zk-lite/client"
	"github.com/zk-lite/zk-lite/znode"
)

// step performs the pending changes of every topic, and returns the node's status. Call
// it again after an error.
func (n *Node) step(ctx context.Context, cache *client.Cache) (Status, error) {
	status := Status{Address: n.address}
	var all error
	for _, name := range cache.Children(topicsPath) {
		pair, stat, ok := decode[Pair](cache, topicPath(name))
		if !ok || !topicName.MatchString(name) {
			continue // not made by CreateTopic
		}
		if pair.Primary == n.ID {
			status.Primary = append(status.Primary, name)
		} else if pair.Backup == n.ID {
			status.Backup = append(status.Backup, name)
		}
		t, err := n.open(name)
		if err == nil {
			err = n.stepTopic(ctx, cache, t, pair, stat.Version)
		}
		var disk diskError
		if errors.As(err, &disk) {
			n.end(err)
		}
		all = errors.Join(all, err)
	}
	status.Load = len(status.Primary) + len(status.Backup)
	return status, all
}

// stepTopic performs the pending change of one topic. A decision from a stale cache has
// no effect: its transaction checks the epoch.
func (n *Node) stepTopic(
	ctx context.Context, cache *client.Cache, t *topic, pair Pair, epoch client.Version,
) error {
	_, primary, lives := decode[Server](cache, primaryPath(t.name))
	_, fixed := cache.Get(prohibitedPath)
	if lives && primary.EphemeralOwner == n.Client.Session().ID {
		return errors.Join(n.showBackup(ctx, cache, t.name, pair), n.lead(ctx, cache, t, pair, epoch, fixed))
	}
	t.follow(epoch)
	if !lives && !fixed && n.mayLead(cache, pair) {
		return n.takeOver(ctx, t, epoch)
	}
	return n.showBackup(ctx, cache, t.name, pair)
}

// showBackup maintains the znode that names the backup.
func (n *Node) showBackup(ctx context.Context, cache *client.Cache, topic string, pair Pair) (err error) {
	_, stat, there := decode[Server](cache, backupPath(topic))
	switch mine := there && stat.EphemeralOwner == n.Client.Session().ID; {
	case pair.Backup == n.ID && !there:
		_, _, err = n.Client.Create(ctx, backupPath(topic), encode(Server{n.ID, n.address}), client.Ephemeral)
	case pair.Backup != n.ID && mine:
		err = n.Client.Delete(ctx, backupPath(topic), client.AnyVersion)
	}
	if errors.Is(err, client.ErrNodeExists) || errors.Is(err, client.ErrNoNode) {
		return nil // the cache will show it
	}
	return err
}

// mayLead reports whether a node has every message: those of the pair do, and every
// node of a new topic, so the least loaded one takes it.
func (n *Node) mayLead(cache *client.Cache, pair Pair) bool {
	if pair.Primary == "" {
		id, _ := leastLoaded(cache, "")
		return id == n.ID
	}
	return pair.Primary == n.ID || pair.Backup == n.ID
}

// takeOver makes the node the primary, for now without a backup. If two try, one
// succeeds, and the other finds a new epoch.
func (n *Node) takeOver(ctx context.Context, t *topic, epoch client.Version) error {
	multi := n.Client.Multi()
	set := multi.Set(topicPath(t.name), encode(Pair{Primary: n.ID}), epoch)
	multi.Create(primaryPath(t.name), encode(Server{n.ID, n.address}), client.Ephemeral)
	if err := multi.Commit(ctx); err != nil {
		return err
	}
	t.follow(set.Stat.Version) // until the cache shows it
	fmt.Fprintf(n.Log, "%s: is the primary of %s, epoch %d\n", n.ID, t.name, set.Stat.Version)
	return nil
}

// lead accepts messages if there is a backup. It replaces a failed one, after the next
// has a copy of everything.
func (n *Node) lead(
	ctx context.Context, cache *client.Cache, t *topic, pair Pair, epoch client.Version, fixed bool,
) error {
	backup, _, _ := decode[Status](cache, znode.Join(nodesPath, pair.Backup))
	current, has := t.lead(epoch, backup.Address)
	if !current || has || fixed {
		return nil
	}
	next := Pair{Primary: n.ID}
	if pair.Backup != "" {
		fmt.Fprintf(n.Log, "%s: %s has lost its backup %s\n", n.ID, t.name, pair.Backup)
	} else {
		id, status := leastLoaded(cache, n.ID)
		if id == "" {
			return nil // until a node comes
		}
		if err := t.sendAll(ctx, status.Address); err != nil {
			return err
		}
		next.Backup = id
	}
	stat, err := n.Client.Set(ctx, topicPath(t.name), encode(next), epoch)
	if err != nil {
		return err
	}
	if next.Backup != "" {
		fmt.Fprintf(n.Log, "%s: the backup of %s is %s, epoch %d\n", n.ID, t.name, next.Backup, stat.Version)
	}
	return cache.WaitZxid(ctx, stat.Mzxid) // so that the next step sees it
}

// leastLoaded is the node with the fewest topics, except the excluded one; "" if there
// is none.
func leastLoaded(cache *client.Cache, without string) (id string, status Status) {
	for _, name := range cache.Children(nodesPath) {
		s, _, ok := decode[Status](cache, znode.Join(nodesPath, name))
		if ok && name != without && (id == "" || s.Load < status.Load) {
			id, status = name, s
		}
	}
	return id, status
}
