package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zk-lite/zk-lite/bench/load"
	"github.com/zk-lite/zk-lite/client"
)

// keys are the znodes that are read and written.
const keys = 256

// sessionTimeout is asked for by both clients.
const sessionTimeout = 30 * time.Second

// dialTime bounds the opening of a session.
const dialTime = 10 * time.Second

func path(key int) string { return fmt.Sprintf("/clients/k%d", key) }

// paths are made beforehand, so that neither client is charged for it.
func paths() (all [keys]string) {
	for i := range all {
		all[i] = path(i)
	}
	return all
}

// ours calls package client.
type ours struct {
	c     *client.Client
	paths [keys]string
}

func dialOurs(host string) (*ours, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	c, err := client.Connect(ctx, host, client.WithSessionTimeout(sessionTimeout))
	if err != nil {
		return nil, err
	}
	return &ours{c, paths()}, nil
}

// Do waits for the answer of one request.
func (o *ours) Do(ctx context.Context, call load.Call) error {
	if call.Op == load.Get {
		_, _, err := o.c.Get(ctx, o.paths[call.Key])
		return err
	}
	_, err := o.c.Set(ctx, o.paths[call.Key], call.Data, client.AnyVersion)
	return err
}

// Close ends the session.
func (o *ours) Close() error { return o.c.Close() }

// theirs calls go-zookeeper.
type theirs struct {
	c     *zk.Conn
	paths [keys]string
}

// silent is go-zookeeper's logger.
type silent struct{}

func (silent) Printf(string, ...any) {}

func dialTheirs(host string) (*theirs, error) {
	c, events, err := zk.Connect([]string{host}, sessionTimeout, zk.WithLogger(silent{}))
	if err != nil {
		return nil, fmt.Errorf("connecting with go-zookeeper: %w", err)
	}
	for limit := time.After(dialTime); ; {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return &theirs{c, paths()}, nil
			}
		case <-limit:
			c.Close()
			return nil, fmt.Errorf("go-zookeeper has no session after %v", dialTime)
		}
	}
}

// Do waits for the answer of one request.
func (t *theirs) Do(_ context.Context, call load.Call) error {
	if call.Op == load.Get {
		_, _, err := t.c.Get(t.paths[call.Key])
		return err
	}
	_, err := t.c.Set(t.paths[call.Key], call.Data, -1)
	return err
}

// Close ends the session.
func (t *theirs) Close() error {
	t.c.Close()
	return nil
}
