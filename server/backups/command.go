package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/zk-lite/zk-lite/internal/supervise"
)

// grace is how long a command has to end, when it must, before it is killed.
const grace = time.Second

// toCommand hands a backup to the command. The command sees the end of its input only when the backup has been
// verified; before, it is ended.
func (s *Scheduler) toCommand(ctx context.Context, b *backup) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.runCommand(ctx, b.name, in) }()
	again, check := io.Pipe()
	verified := make(chan error, 1)
	go func() {
		err := b.verify(ctx, again)
		again.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // for what is still written
		verified <- err
	}()
	err = b.write(ctx, io.MultiWriter(out, check))
	check.CloseWithError(err)
	if unverified := <-verified; err == nil {
		err = unverified
	}
	if err != nil {
		cancel()
		return errors.Join(<-ended, err, out.Close())
	}
	return errors.Join(out.Close(), <-ended)
}

// runCommand runs the command until it ends, or ctx does. It closes in.
func (s *Scheduler) runCommand(ctx context.Context, name string, in *os.File) error {
	defer in.Close() // a write that waits for the command fails
	code, err := supervise.Run(ctx, &supervise.Command{
		Args: []string{"/bin/sh", "-c", s.cfg.Command}, Env: []string{"ZK_LITE_BACKUP=" + name},
		Grace: grace, OwnGroup: true, Files: [3]*os.File{in, os.Stderr, os.Stderr},
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("backup.command ended with exit code %d", code)
	}
	return err
}
