package app

import (
	"github.com/zk-lite/zk-lite/api/zk"
	"github.com/zk-lite/zk-lite/app/config"
)

func connectionThrottle(c *config.Settings) zk.ConnectionThrottle {
	t := &c.Throttle
	z := zk.ConnectionThrottle{
		MaxTokens: t.MaxTokens, FillTime: t.FillTime, FillCount: t.FillCount,
		Freeze: t.Freeze, DropIncrease: t.Increase, Decrease: t.Decrease, DecreaseRatio: t.Ratio,
	}
	if t.Freeze == 0 {
		z.Freeze = -1
	}
	if t.Weighted {
		z.New, z.Renewed = t.NewWeight, t.RenewWeight
	}
	return z
}
