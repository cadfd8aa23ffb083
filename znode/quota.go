package znode

import (
	"sort"
	"strconv"
	"strings"
)

// Quotas are in the tree itself, where ZooKeeper's clients put them: the limits
// of /a in /zookeeper/quota/a/zookeeper_limits, its usage in
// /zookeeper/quota/a/zookeeper_stats, both as text. Clients create the two
// znodes; the tree keeps the second one current without counting that as a
// change (no version, no mzxid, no event).
const (
	quotaLimitsName = "zookeeper_limits"
	quotaStatsName  = "zookeeper_stats"
)

// quotaLimits are the limits of one subtree; -1 means none.
type quotaLimits struct {
	count, bytes         int64 // soft: excess is only reported
	countHard, bytesHard int64
}

// quotaText is the "key=value" text of both znodes (ZooKeeper's StatsTrack):
// count and bytes, then, after a spurious "=", other keys, so that parsers of
// version 3.4 stop there.
type quotaText map[string]int64

func parseQuota(data []byte) quotaText {
	q := quotaText{}
	for _, pair := range strings.FieldsFunc(string(data), func(r rune) bool { return r == ',' || r == ';' }) {
		key, value, _ := strings.Cut(pair, "=")
		value, _, _ = strings.Cut(value, "=")
		if v, err := strconv.ParseInt(value, 10, 64); err == nil {
			q[key] = v
		}
	}
	return q
}

func (q quotaText) get(key string) int64 {
	if v, ok := q[key]; ok {
		return v
	}
	return -1
}

func (q quotaText) format() []byte {
	b := []byte("count=" + strconv.FormatInt(q.get("count"), 10) + ",bytes=" + strconv.FormatInt(q.get("bytes"), 10))
	var rest []string
	for key, v := range q {
		if key != "count" && key != "bytes" {
			rest = append(rest, ";"+key+"="+strconv.FormatInt(v, 10))
		}
	}
	if len(rest) > 0 {
		sort.Strings(rest)
		b = append(b, '=')
		b = append(b, strings.Join(rest, "")...)
	}
	return b
}

// quotaSubject returns the path whose quota a znode under /zookeeper/quota
// holds, if its name is the given one.
func quotaSubject(path, name string) (string, bool) {
	if !strings.HasPrefix(path, QuotaPath+"/") || !strings.HasSuffix(path, "/"+name) {
		return "", false
	}
	subject := path[len(QuotaPath) : len(path)-len(name)-1]
	return subject, subject != ""
}

// noteQuota keeps the table of limits: n is a znode that was linked or changed
// (present) or is about to be unlinked.
func (t *Tree) noteQuota(n *node, present bool) {
	subject, ok := quotaSubject(n.path(), quotaLimitsName)
	if !ok {
		return
	}
	if !present {
		delete(t.quotas, subject)
		return
	}
	q := parseQuota(n.data())
	t.quotas[strings.Clone(subject)] = quotaLimits{
		count: q.get("count"), countHard: q.get("countHardLimit"),
		bytes: q.get("bytes"), bytesHard: q.get("byteHardLimit"),
	}
}

// quotaOf finds the nearest znode at or above path that has limits.
func (t *Tree) quotaOf(path string) (subject string, limits quotaLimits, ok bool) {
	if len(t.quotas) == 0 || strings.HasPrefix(path, SystemPath+"/") {
		return "", quotaLimits{}, false
	}
	for ; path != RootPath; path = Parent(path) {
		if limits, ok = t.quotas[path]; ok {
			return path, limits, true
		}
	}
	return "", quotaLimits{}, false
}

func quotaStatsPath(subject string) string { return QuotaPath + subject + "/" + quotaStatsName }

// checkQuota refuses a change that exceeds a hard limit if quotas are enforced
// (ZooKeeperServer.checkQuota), and reports the limits that it exceeds.
func (t *Tree) checkQuota(x *Txn, path string, bytes, count int64) Error {
	subject, limits, ok := t.quotaOf(path)
	if !ok {
		return OK
	}
	stats := t.get(quotaStatsPath(subject))
	if stats == nil {
		return OK
	}
	used := parseQuota(stats.data())
	hard, over := false, false
	exceeds := func(diff, now, soft, firm int64) {
		if diff == 0 {
			return
		}
		switch {
		case firm >= 0:
			hard = hard || now+diff > firm
		case soft >= 0:
			over = over || now+diff > soft
		}
	}
	exceeds(count, used.get("count"), limits.count, limits.countHard)
	exceeds(bytes, used.get("bytes"), limits.bytes, limits.bytesHard)
	if hard || over {
		x.Exceeded = append(x.Exceeded, subject)
	}
	if hard && x.EnforceQuota {
		return ErrQuotaExceeded
	}
	return OK
}

// chargeQuota counts a change. It fills a new zookeeper_stats znode by counting
// its subject's subtree.
func (t *Tree) chargeQuota(x *Txn, path string, bytes, count int64) {
	if subject, ok := quotaSubject(path, quotaStatsName); ok && count > 0 {
		t.writeQuota(x, path, quotaText{"count": 0, "bytes": 0}, t.subtreeSize(subject))
		return
	}
	if subject, _, ok := t.quotaOf(path); ok {
		statsPath := quotaStatsPath(subject)
		if stats := t.get(statsPath); stats != nil {
			t.writeQuota(x, statsPath, parseQuota(stats.data()), [2]int64{count, bytes})
		}
	}
}

func (t *Tree) writeQuota(x *Txn, statsPath string, q quotaText, add [2]int64) {
	q["count"] = q.get("count") + add[0]
	q["bytes"] = q.get("bytes") + add[1]
	t.putData(t.edit(x, t.get(statsPath)), q.format())
}

// subtreeSize counts the znodes at and below path and their data bytes.
func (t *Tree) subtreeSize(path string) (size [2]int64) {
	n := t.get(path)
	if n == nil {
		return size
	}
	znodes, bytes := n.below()
	return [2]int64{int64(znodes) + 1, bytes + int64(n.size())}
}
