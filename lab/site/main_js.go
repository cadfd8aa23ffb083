package main

import (
	"encoding/json"
	"syscall/js"

	"github.com/zk-lite/zk-lite/lab/page"
)

func main() {
	js.Global().Set("zkLiteLab", map[string]any{
		"catalogue": js.FuncOf(func(js.Value, []js.Value) any {
			data, err := page.Catalogue(false)
			return answer(data, err)
		}),
		"run": js.FuncOf(func(_ js.Value, arguments []js.Value) any {
			var words []string
			if err := json.Unmarshal([]byte(arguments[0].String()), &words); err != nil {
				return answer(nil, err)
			}
			t, err := page.Run(words)
			if err != nil {
				return answer(nil, err)
			}
			return answer(json.Marshal(t))
		}),
	})
	select {} // the functions are called as long as the page is open
}

// answer is text in JSON, and whether it is an error.
func answer(data []byte, err error) any {
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"data": string(data)}
}
