package rest

import (
	"net/netip"

	"github.com/zk-lite/zk-lite/znode"
)

// identify finds out who asks: HTTP Basic is ZooKeeper's scheme digest, and the
// address is an identity as at the ZooKeeper port.
func (q *Request) identify(*Route) error {
	q.Address = remoteAddress(q.HTTP.RemoteAddr)
	q.IDs = []znode.ID{{Scheme: "ip", ID: q.Address}}
	q.Anonymous = true
	if _, given := q.HTTP.Header["Authorization"]; !given {
		return nil
	}
	user, password, ok := q.HTTP.BasicAuth()
	if !ok {
		return &Problem{
			Status: 401, Code: znode.ErrAuthFailed, Param: "Authorization",
			Detail: "Authorization: not HTTP Basic credentials",
			Hint:   "send user and password: curl -u user:password",
		}
	}
	q.Anonymous = false
	q.IDs = append(q.IDs, q.Core.Server.Authenticate(user+":"+password)...)
	return nil
}

func remoteAddress(hostport string) string {
	a, err := netip.ParseAddrPort(hostport)
	if err != nil {
		return hostport // not a TCP connection
	}
	return a.Addr().Unmap().String()
}
