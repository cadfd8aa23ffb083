package api

import (
	"net/netip"

	"github.com/zk-lite/zk-lite/znode"
)

// identify finds out who asks: HTTP Basic is ZooKeeper's scheme digest, and the
// address is an identity as at the ZooKeeper port.
func (q *request) identify(*route) error {
	q.address = remoteAddress(q.http.RemoteAddr)
	q.ids = []znode.ID{{Scheme: "ip", ID: q.address}}
	q.anonymous = true
	if _, given := q.http.Header["Authorization"]; !given {
		return nil
	}
	user, password, ok := q.http.BasicAuth()
	if !ok {
		return &problem{
			Status: 401, Code: znode.ErrAuthFailed, Param: "Authorization",
			Detail: "Authorization: not HTTP Basic credentials",
			Hint:   "send user and password: curl -u user:password",
		}
	}
	q.anonymous = false
	q.ids = append(q.ids, q.door.srv.Authenticate(user+":"+password)...)
	return nil
}

func remoteAddress(hostport string) string {
	a, err := netip.ParseAddrPort(hostport)
	if err != nil {
		return hostport // not a TCP connection
	}
	return a.Addr().Unmap().String()
}
