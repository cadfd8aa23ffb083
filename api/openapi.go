package api

import "net/http"

type documents struct{ openapi, html []byte }

func buildDocuments(string) documents { return documents{} }

func (q *request) openapi() error {
	q.sendBytes(http.StatusOK, "application/json", q.door.docs.openapi)
	return nil
}

func (q *request) docs() error {
	q.sendBytes(http.StatusOK, "text/html; charset=utf-8", q.door.docs.html)
	return nil
}

func anchor(s string) string { return s }
