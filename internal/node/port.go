package node

import "github.com/zk-lite/zk-lite/api"

// port lets the HTTP door tell of the ZooKeeper port.
func (n *Node) port() *api.Port {
	return &api.Port{
		Totals: func() api.PortTotals { return api.PortTotals(n.zk.Totals()) },
		Connections: func() []api.PortConnection {
			all := n.zk.Connections()
			list := make([]api.PortConnection, len(all))
			for i := range all {
				list[i] = api.PortConnection(all[i])
			}
			return list
		},
		ResetTotals: n.zk.ResetTotals, ResetConnections: n.zk.ResetConnections,
		TraceMask: n.zk.TraceMask, SetTraceMask: n.zk.SetTraceMask,
		DirSizes: n.zk.DirSizes, Emit: n.zk.Emit,
	}
}
