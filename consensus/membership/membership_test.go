package membership

import (
	"context"
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

func TestStatus_Lag_IsNeverNegative(t *testing.T) {
	s := Status{AppliedIndex: 10}
	for applied, want := range map[uint64]uint64{0: 10, 7: 3, 10: 0, 12: 0} {
		if got := s.Lag(&MemberStatus{AppliedIndex: applied}); got != want {
			t.Errorf("applied %d: lag %d, want %d", applied, got, want)
		}
	}
}

// A server could not be closed any more when raft had forgotten a transfer of leadership:
// the request that had asked for it waited for ever, and Close for the request. The
// simulation found it (a seed of 30300 to 30649).
func TestRegression_Transfer_ThatNeverEnds_EndsWithTheNode(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	e := New(Config{Context: ctx, StopRetrying: func() {}})
	asked, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- e.transfer(func() raft.Future {
			close(asked)
			return forgotten{t.Context()}
		})
	}()
	<-asked
	cancel(stopped)
	if err := <-ended; !errors.Is(err, stopped) {
		t.Errorf("it ended with %v", err)
	}
}

// forgotten is a future that nobody answers while the test runs.
type forgotten struct{ context.Context }

func (f forgotten) Error() error {
	<-f.Done()
	return f.Err()
}
