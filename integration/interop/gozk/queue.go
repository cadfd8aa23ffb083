package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// queueSession is long: a place in the line is lost with the session, and the machine may
// be busy.
const queueSession = 30 * time.Second

// queue queues for a lock, beside other clients: it prints "queued" when its znode is in the
// queue, "held" when its turn has come, waits for a line on its input, releases the lock, and
// prints "released".
func queue(hosts, path string) error {
	c, _, err := zk.Connect(strings.Split(hosts, ","), queueSession,
		zk.WithLogger(log.New(os.Stderr, "", log.Ltime)))
	if err != nil {
		return err
	}
	defer c.Close()
	go func() {
		for !inLine(c, path) {
			time.Sleep(10 * time.Millisecond)
		}
		fmt.Println("queued")
	}()
	lock := zk.NewLock(c, path, open)
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("locking %s: %w", path, err)
	}
	fmt.Println("held")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("waiting to be told to release: %w", err)
	}
	if err := lock.Unlock(); err != nil {
		return fmt.Errorf("unlocking %s: %w", path, err)
	}
	fmt.Println("released")
	return nil
}

// inLine reports whether a znode in the line is the session's own.
func inLine(c *zk.Conn, path string) bool {
	names, _, err := c.Children(path)
	if err != nil {
		return false // the lock's znode is not there yet
	}
	for _, name := range names {
		there, stat, err := c.Exists(path + "/" + name)
		if err == nil && there && stat.EphemeralOwner != 0 && stat.EphemeralOwner == c.SessionID() {
			return true
		}
	}
	return false
}
