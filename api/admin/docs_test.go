package admin

import (
	"strings"
	"testing"
)

func TestMerge_RefusesWhatIsThereTwice(t *testing.T) {
	into := object{"a": object{"b": "1"}}
	if err := merge(into, object{"a": object{"c": "2"}}, ""); err != nil {
		t.Error(err)
	}
	if err := merge(into, object{"a": object{"b": "1"}}, ""); err == nil ||
		!strings.Contains(err.Error(), "/a/b") {
		t.Errorf("merge: error %v, want one that names /a/b", err)
	}
}
