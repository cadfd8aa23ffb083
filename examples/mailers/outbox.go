package main

import (
	"errors"
	"fmt"
	"sync"
)

// The refusals of an outbox.
var (
	// ErrStale says that the mail has been claimed again since: whoever sends is
	// not the one whose turn it is.
	ErrStale = errors.New("the claim is stale")
	// ErrAnswered says that the mail has its answer: all that is left to do is to
	// remove it from the queue.
	ErrAnswered = errors.New("the mail is answered already")
)

// Outbox takes one answer for each mail, from the one who has claimed it last. The
// zero value is empty.
type Outbox struct {
	mu    sync.Mutex // protects the fields below
	mails map[string]*record

	stale, repeated int // refusals
}

// record is what an outbox knows of a mail. A real one can forget it when the mail
// has left the queue and no session of that time lives any more.
type record struct {
	token   int64    // the highest with which somebody has come
	answers []string // at most one, if the outbox is right
}

// Begin says that a processor has claimed a mail. From then on earlier claims of
// it are refused.
//
// Errors: ErrStale, ErrAnswered.
func (o *Outbox) Begin(mail string, token int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err := o.passLocked(mail, token)
	return err
}

// Send sends the answer to a mail.
//
// Errors: ErrStale, ErrAnswered.
func (o *Outbox) Send(mail string, token int64, answer string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, err := o.passLocked(mail, token)
	if err != nil {
		return err
	}
	r.answers = append(r.answers, answer)
	return nil
}

// passLocked finds the record of a mail, for one who may answer it.
func (o *Outbox) passLocked(mail string, token int64) (*record, error) {
	if o.mails == nil {
		o.mails = map[string]*record{}
	}
	r := o.mails[mail]
	if r == nil {
		r = &record{}
		o.mails[mail] = r
	}
	if token < r.token {
		o.stale++
		return nil, fmt.Errorf("%s: %w: token %#x after %#x",
			mail, ErrStale, token, r.token)
	}
	r.token = token
	if len(r.answers) > 0 {
		o.repeated++
		return nil, fmt.Errorf("%s: %w", mail, ErrAnswered)
	}
	return r, nil
}

// Answers returns all answers that were sent, by the mails' names.
func (o *Outbox) Answers() map[string][]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[string][]string{}
	for mail, r := range o.mails {
		if len(r.answers) > 0 {
			all[mail] = append([]string(nil), r.answers...)
		}
	}
	return all
}

// Refused returns how many were refused because their claims were stale, and how
// many because there was an answer.
func (o *Outbox) Refused() (stale, repeated int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stale, o.repeated
}
