package cli

import "github.com/zk-lite/zk-lite/client"

type shell struct{ client *client.Client }

func (s *shell) await(*client.Watch) {}
