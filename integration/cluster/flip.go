package cluster

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// Flip changes a bit of every copy of a text in the memory of the running server, as broken memory does, and fails the
// test if there is none. It needs Linux, and root or the right to trace a child process.
func (s *Server) Flip(text string) {
	s.e.t.Helper()
	copies, err := flip(s.PID(), []byte(text))
	if err == nil && copies == 0 {
		err = fmt.Errorf("%q is nowhere in its memory", text)
	}
	if err != nil {
		s.e.t.Fatalf("flipping a bit of server %d: %v", s.ID, err)
	}
}

func flip(pid int, text []byte) (copies int, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, err
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer memory.Close()
	lines := bufio.NewScanner(bytes.NewReader(maps))
	for lines.Scan() {
		var from, to uint64
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); err != nil {
			return copies, fmt.Errorf("a line of its maps, %q: %w", lines.Text(), err)
		}
		if rights != "rw-p" || strings.Contains(lines.Text(), "/") { // of a file
			continue
		}
		// What is not there any more, or was never used, cannot be read: it has no copy.
		content, _ := io.ReadAll(io.NewSectionReader(memory, int64(from), int64(to-from)))
		for at := 0; ; at++ {
			next := bytes.Index(content[at:], text)
			if next < 0 {
				break
			}
			at += next
			if _, err := memory.WriteAt([]byte{text[0] ^ 1}, int64(from)+int64(at)); err != nil {
				return copies, err
			}
			copies++
		}
	}
	return copies, nil
}
