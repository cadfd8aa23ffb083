//go:build nextrelease

package membership

// nextRelease is a field that servers of the release before do not know.
type nextRelease struct {
	Next string `json:"next"`
}

func releaseFields() nextRelease { return nextRelease{Next: "a field of the next release"} }
