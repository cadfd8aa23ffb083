package client

import (
	"testing"
)

// BenchmarkClient measures operations one at a time against a server in memory.
func BenchmarkClient(b *testing.B) {
	s := newFakeServer(b)
	c, err := Connect(b.Context(), "10.0.0.1", WithDialer(s.dial))
	if err != nil {
		b.Fatal(err)
	}
	defer s.stop()
	defer c.Close()
	ctx, data := b.Context(), make([]byte, 100)
	if _, err := c.Set(ctx, "/", data, AnyVersion); err != nil {
		b.Fatal(err)
	}
	for _, op := range []struct {
		name string
		do   func() error
	}{
		{"get", func() error { _, _, err := c.Get(ctx, "/"); return err }},
		{"async get", func() error { _, err := c.Async().Get(ctx, "/").Wait(ctx); return err }},
		{"exists", func() error { _, _, err := c.Exists(ctx, "/"); return err }},
		{"children", func() error { _, _, err := c.Children(ctx, "/"); return err }},
		{"set", func() error { _, err := c.Set(ctx, "/", data, AnyVersion); return err }},
		{"sync", func() error { return c.Sync(ctx, "/") }},
	} {
		b.Run(op.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := op.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
