package state

import (
	"fmt"
)

// RestoreStep is the action of an OpRestore.
type RestoreStep uint8

// The steps.
const (
	RestorePart   RestoreStep = iota // brings the next part, in Command.Data
	RestoreCommit                    // all parts have been sent: restore
	RestoreAbort                     // forget the parts
)

const lastRestoreStep = RestoreAbort

// RestoreCommand is the parameters of an OpRestore without its data.
//
// The codes of its results: OK; ErrThrottled if another upload is in progress;
// ErrDataInconsistency if the upload is unknown or incomplete, because another
// one has replaced it; ErrBadArguments if it is too large; ErrMarshalling if it
// is not a backup; ErrNotEmpty if there are znodes and Replace is not set.
// After all of them but OK, nothing has changed.
type RestoreCommand struct {
	Step    RestoreStep
	Upload  uint64 // names the upload; chosen at random by the server
	Part    uint64 // the number of this part, from 0; of a commit, how many there are
	Sum     uint64 // of a commit: xxHash64 of the whole backup
	Replace bool   // of a commit: even if there are znodes besides the system's
}

func (x *RestoreCommand) append(b []byte) []byte {
	b = appendUint(appendUint(append(b, byte(x.Step)), x.Upload), x.Part)
	return append(appendUint(b, x.Sum), flag(x.Replace))
}

func readRestore(r *reader) RestoreCommand {
	x := RestoreCommand{
		Step: RestoreStep(r.byte()), Upload: r.uint(), Part: r.uint(), Sum: r.uint(),
		Replace: r.byte() == 1,
	}
	if x.Step > lastRestoreStep {
		r.fail(errRestoreStep(x.Step))
	}
	return x
}

type errRestoreStep RestoreStep

func (e errRestoreStep) Error() string { return fmt.Sprintf("unknown step %d of a restore", uint8(e)) }
