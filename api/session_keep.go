package api

import "net/http"

// keepSession is a heartbeat. Reading the header has noted it already.
func (q *request) keepSession() error {
	if err := q.ownSession(); err != nil {
		return err
	}
	return q.answer(http.StatusOK, sessionBody{
		ID: q.session.String(), Timeout: q.timeout.String(),
	})
}
