package api_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/zk-lite/zk-lite/internal/testkit/tier"
)

// TestWalk_Coordination runs every command of docs/http-coordination.md as TestWalk
// does those of docs/http.md.
func TestWalk_Coordination(t *testing.T) {
	tier.Seconds(t)
	t.Parallel()
	walkThrough(t, "../docs/http-coordination.md", 40, func() replacer { return newPlaces() })
}

// places replaces tickets and figures of the ensemble, in addition to normaliser.
type places struct {
	*normaliser
	guids, numbers map[string]string
}

func newPlaces() *places { return &places{newNormaliser(), map[string]string{}, map[string]string{}} }

var (
	guids  = regexp.MustCompile(`_c_[0-9a-f]{8}-[0-9a-f-]{27}`)
	tokens = regexp.MustCompile(`"(fencing_token|token|newest)":"[0-9]+"`)
	// Times, keys, tokens, addresses, and how far a log has come.
	passing = regexp.MustCompile(`20[0-9]{2}-[0-9-]{5}T[0-9:.]{8,12}Z|"key":"[0-9a-f]{16}"|"version":"[^"]*"|one-time-[A-Z2-7]{26}|127\.0\.0\.1:[0-9]+(:[0-9]+)?|` +
		`"(last_index|applied_index|pending|lag)":[0-9]+|"last_contact":"[^"]*"|(raft_leader|znode_count) [0-9]+`)
)

func (p *places) replace(text string) string {
	text = guids.ReplaceAllStringFunc(text, func(s string) string {
		if p.guids[s] == "" {
			p.guids[s] = fmt.Sprintf("_c_<%d>", len(p.guids)+1)
		}
		return p.guids[s]
	})
	text = tokens.ReplaceAllStringFunc(text, func(s string) string {
		name, number, _ := strings.Cut(s, ":")
		if p.numbers[number] == "" {
			p.numbers[number] = fmt.Sprintf("<token %d>", len(p.numbers)+1)
		}
		return name + ":" + p.numbers[number]
	})
	return p.normaliser.replace(passing.ReplaceAllString(text, "~"))
}
