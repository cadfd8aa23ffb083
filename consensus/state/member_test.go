package state

import (
	"encoding/json"
	"testing"
)

func TestServerID_JSON(t *testing.T) {
	for text, id := range map[string]ServerID{"0": 0, "7": 7, "254": 254, "-1": NoServer} {
		var got ServerID
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != id {
			t.Errorf("%s is read as %d, %v", text, got, err)
		}
		if b, err := json.Marshal(id); err != nil || string(b) != text {
			t.Errorf("%d is written as %s, %v", id, b, err)
		}
	}
	for _, text := range []string{"255", "-2", "1.5", `"1"`, "99999999999999999999"} {
		var got ServerID
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is read as %d", text, got)
		}
	}
}
