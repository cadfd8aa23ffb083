package app

// pendingBytes bounds the commands without a result. 0 is the default of package consensus.
func pendingBytes(o *Options) int {
	const least, most = 1 << 20, 64 << 20
	if o.Settings.PendingBytes == 0 && o.Memory > 0 {
		return int(min(max(o.Memory/16, least), most))
	}
	return int(o.Settings.PendingBytes)
}

// sixteenth is a part of the memory in place of a setting that is 0: for watches, and for what waits for clients. It
// is 0, the default of their packages, if the memory is not known.
func sixteenth(o *Options, setting int64) int64 {
	if setting == 0 {
		return o.Memory / 16
	}
	return setting
}

// treeLimit is how much memory the tree may take; 0: no limit. As much again is for what the collector has yet to
// find; the rest is for the program, requests, replies, watches, a snapshot and the restart.
func treeLimit(o *Options) int64 {
	const program, least = 32 << 20, 4 << 20
	if o.Settings.TreeBytes == 0 && o.Memory > 0 {
		return max((o.Memory-program)/5*2, least)
	}
	return o.Settings.TreeBytes
}
