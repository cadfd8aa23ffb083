package api

// releaseLock gives a lock, or the place in its queue, back.
func (q *request) releaseLock() error { return q.giveBack(lockKind()) }

// giveBack carries out the DELETE of a ticket.
func (q *request) giveBack(k queueKind) error {
	ticket, err := k.parseTicket(q.vars["ticket"]) // first: it may be missing, and be the path's end
	if err != nil {
		return err
	}
	dir, err := q.queuePath(k)
	if err != nil {
		return err
	}
	if err := q.needSession(); err != nil {
		return err
	}
	return q.leave(&place{k, dir, ticket})
}
