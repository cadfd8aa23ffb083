package data

import (
	"net/http"

	"github.com/zk-lite/zk-lite/api/rest"
)

// identityBody is who asks.
type identityBody struct {
	Identities    []identity `json:"identities"`
	Anonymous     bool       `json:"anonymous"` // it has proved nothing but its address
	Administrator bool       `json:"administrator"`
}

type identity struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
}

// getIdentity says as whom this server takes the client. Credentials that prove nothing are refused.
func getIdentity(q *rest.Request) error {
	body := identityBody{Identities: []identity{}, Administrator: q.IsAdministrator()}
	body.Anonymous = q.Anonymous && !body.Administrator
	for _, id := range q.IDs {
		body.Identities = append(body.Identities, identity{id.Scheme, id.ID})
	}
	return q.Answer(http.StatusOK, body)
}
