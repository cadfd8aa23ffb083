package config

func throttleRows(s *Settings) []setting {
	return []setting{
		{key: "connectionMaxTokens", aliases: []string{"connection_throttle_tokens"},
			kind: kindInt, def: "0", min: 0, max: maxInt, to: &s.ZooKeeper.Throttle.MaxTokens,
			help: "Sessions that may be opened at once before they are throttled; 0 is no throttle."},
		{key: "connectionTokenFillTime", aliases: []string{"connection_throttle_fill_time"},
			kind: kindMillis, def: "1", min: 1, max: day, to: &s.ZooKeeper.Throttle.FillTime,
			help: "Time after which `connectionTokenFillCount` more may."},
		{key: "connectionTokenFillCount", aliases: []string{"connection_throttle_fill_count"},
			kind: kindInt, def: "1", min: 1, max: maxInt, to: &s.ZooKeeper.Throttle.FillCount,
			help: "How many more."},
		{key: "connectionFreezeTime", aliases: []string{"connection_throttle_freeze_time"},
			kind: kindMillis, def: "-1", min: 0, max: day, minusOne: true, to: &s.ZooKeeper.Throttle.Freeze,
			help: "Time between two changes of the chance to be refused beyond that; -1 is no chance."},
		{key: "connectionDropIncrease", aliases: []string{"connection_throttle_drop_increase"},
			kind: kindFloat, def: "0.02", min: 0, max: 1, to: &s.ZooKeeper.Throttle.DropIncrease,
			help: "How much the chance rises while no session may be opened."},
		{key: "connectionDropDecrease", aliases: []string{"connection_throttle_drop_decrease"},
			kind: kindFloat, def: "0.002", min: 0, max: 1, to: &s.ZooKeeper.Throttle.Decrease,
			help: "How much it falls again."},
		{key: "connectionDecreaseRatio", aliases: []string{"connection_throttle_decrease_ratio"},
			kind: kindFloat, def: "0", min: 0, max: 1, to: &s.ZooKeeper.Throttle.DecreaseRatio,
			help: "Part of `connectionMaxTokens` that may be in use while it falls."},
		{key: "connection_throttle_weight_enabled", flag: "connection-throttle-weight-enabled",
			kind: kindBool, def: "false", to: &s.words.weighted,
			help: "Let new sessions, and those that come back, count more than one."},
		{key: "connection_throttle_global_session_weight", flag: "connection-throttle-global-session-weight",
			kind: kindInt, def: "3", min: 1, max: maxInt,
			to: &s.words.newWeight, help: "What a new session counts then."},
		{key: "connection_throttle_renew_session_weight", flag: "connection-throttle-renew-session-weight",
			kind: kindInt, def: "2", min: 1, max: maxInt, to: &s.words.renewWeight,
			help: "What a session counts that comes back."},
		{key: "requestThrottleLimit", aliases: []string{"request_throttle_max_requests"},
			kind: kindInt, def: "0", min: 0, max: maxInt, to: &s.ZooKeeper.MaxRequests,
			help: "Most requests of all clients that wait for their result; beyond it the server stops reading. " +
				"0 is no limit."},
	}
}

// resolveThrottle has a session count one unless weights are on.
func (l *loader) resolveThrottle() {
	if w := &l.s.words; w.weighted {
		l.s.ZooKeeper.Throttle.New, l.s.ZooKeeper.Throttle.Renewed = w.newWeight, w.renewWeight
	}
}
