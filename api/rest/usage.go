package rest

import (
	"net/netip"

	"github.com/zk-lite/zk-lite/server/insight"
)

// countUse counts a request that has ended.
func (q *Request) countUse() {
	t := q.Core.Server.Usage()
	if t.Skip() {
		return
	}
	address, _ := netip.ParseAddr(q.Address)
	t.Count(insight.Use{
		Session: q.Session, Address: address, Path: q.Vars["path"],
		Bytes: int(max(q.HTTP.ContentLength, 0)) + q.sent,
	})
}
