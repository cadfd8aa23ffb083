package follow

import (
	"os"
	"syscall"
	"time"
)

func ctime(info os.FileInfo) (t time.Time) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		t = time.Unix(st.Ctim.Unix())
	}
	return t
}
