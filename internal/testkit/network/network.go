// Package network gives each server of an ensemble a network namespace of its own, with a switch between
// them that delays, loses, doubles and cuts, in each direction of each pair. It needs root, iproute2 and
// /dev/net/tun. It starts no servers.
//
// # Concurrency
//
// Methods are safe for concurrent use. Every place has two goroutines, one that reads its packets and one
// that holds those of slow links; Close ends them.
package network

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Host is the place of this process, and so of all clients, in a
// Network; servers have their numbers from 1.
const Host = 0

const (
	// networkMTU is large so that few packets carry much.
	networkMTU = 9000
	// maxDelayed bounds the packets that are under way on slow links, as the queue of a router
	// does; more are lost.
	maxDelayed = 100_000
	// tunFlags ask for packets of IP without further headers.
	tunFlags = syscall.IFF_TUN | syscall.IFF_NO_PI
	ifreqLen = 40 // sizeof(struct ifreq)
)

// Link describes what happens to packets on their way from one place to another. The zero value
// carries them all, at once.
type Link struct {
	Cut       bool          // nothing arrives
	Delay     time.Duration // every packet takes this long
	Jitter    time.Duration // and up to this much longer, which changes their order
	Loss      float64       // the part of the packets that is lost, 0..1
	Duplicate float64       // the part that arrives twice, 0..1
}

// Counts counts what happened to the packets of a Network.
type Counts struct {
	Carried, Cut, Lost, Delayed, Duplicated int64
}

// Network is a network namespace for each server and a switch between them. The switch is this
// process: every namespace has a TUN device whose packets arrive here, so that each direction
// between two servers, or between a server and the clients, has a Link of its own. (The
// kernel's netem does the same from outside, but many kernels are built without it.)
type Network struct {
	third int // of the subnet 198.18.third.0/24
	n     int
	tuns  []*os.File
	done  sync.WaitGroup

	carried, cut, lost, delayed, duplicated atomic.Int64

	mu    sync.Mutex // protects the fields below
	links map[[2]int]Link
	rng   *rand.Rand
	slow  []*delayLine // one for each destination
}

// New makes the namespaces of n servers. The seed is for losses, jitter and duplicates.
func New(n int, seed uint64) (*Network, error) {
	w := &Network{n: n, links: map[[2]int]Link{}, rng: rand.New(rand.NewPCG(seed, 1))}
	err := w.claim()
	for place := 0; err == nil && place <= n; place++ {
		err = w.add(place)
	}
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("a network namespace for each server, which needs root, iproute2 and "+
			"/dev/net/tun: %w", err)
	}
	for place := range n + 1 {
		w.done.Go(func() { w.carry(place) })
		w.done.Go(w.slow[place].run)
	}
	return w, nil
}

// claim finds a subnet that no one else on this machine has: the process that made the host's
// device of that number has the subnet.
func (w *Network) claim() (err error) {
	for range 100 {
		w.third = rand.IntN(256)
		var tun *os.File
		if tun, err = openTUN(w.device(Host)); err == nil {
			w.tuns = append(w.tuns, tun)
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}
	}
	return err
}

// add makes one place: a namespace, except for the host, and its device.
func (w *Network) add(place int) error {
	device := w.device(place)
	if place != Host {
		tun, err := openTUN(device)
		if err != nil {
			return err
		}
		w.tuns = append(w.tuns, tun)
		// One may be left of a process that was killed.
		_ = exec.Command("ip", "netns", "del", w.namespace(place)).Run()
	}
	w.slow = append(w.slow, newDelayLine(w.tuns[place]))
	up := fmt.Sprintf("link set %s up mtu %d", device, networkMTU)
	address := fmt.Sprintf("addr add %s/24 dev %s", w.IP(place), device)
	commands := []string{address, up}
	if place != Host {
		ns := w.namespace(place)
		commands = []string{"netns add " + ns, "link set " + device + " netns " + ns,
			"-n " + ns + " link set lo up", "-n " + ns + " " + address, "-n " + ns + " " + up}
	}
	for _, c := range commands {
		if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", c, err, out)
		}
	}
	return nil
}

// openTUN makes a TUN device (Linux, Documentation/networking/tuntap.rst).
func openTUN(name string) (*os.File, error) {
	const path = "/dev/net/tun"
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	var request [ifreqLen]byte
	copy(request[:syscall.IFNAMSIZ-1], name)
	*(*uint16)(unsafe.Pointer(&request[syscall.IFNAMSIZ])) = tunFlags
	_, _, code := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TUNSETIFF,
		uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(&request)
	if code != 0 {
		_ = syscall.Close(fd) // the error is the one below
		return nil, fmt.Errorf("making the device %s: %w", name, code)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (w *Network) namespace(place int) string { return fmt.Sprintf("zklite%d-%d", w.third, place) }
func (w *Network) device(place int) string    { return fmt.Sprintf("zklite%dt%d", w.third, place) }

// IP is the address of a place.
func (w *Network) IP(place int) string {
	if place == Host {
		place = 254
	}
	// 198.18.0.0/15 is reserved for tests of networks (RFC 2544).
	return fmt.Sprintf("198.18.%d.%d", w.third, place)
}

// Command is a program and its arguments, to run where a server is.
func (w *Network) Command(place int, args []string) []string {
	return append([]string{"ip", "netns", "exec", w.namespace(place)}, args...)
}

// Set changes the link in one direction.
func (w *Network) Set(from, to int, l Link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.links[[2]int{from, to}] = l
}

// SetBoth changes the links in both directions.
func (w *Network) SetBoth(a, b int, l Link) {
	w.Set(a, b, l)
	w.Set(b, a, l)
}

// SetServers changes all links between servers.
func (w *Network) SetServers(l Link) {
	for a := 1; a <= w.n; a++ {
		for b := 1; b <= w.n; b++ {
			w.Set(a, b, l)
		}
	}
}

// Isolate cuts a server off from the other servers, not from the clients.
func (w *Network) Isolate(server int) {
	for other := 1; other <= w.n; other++ {
		if other != server {
			w.SetBoth(server, other, Link{Cut: true})
		}
	}
}

// Heal makes all links as they were.
func (w *Network) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.links)
}

// Counts returns the counts so far.
func (w *Network) Counts() Counts {
	return Counts{Carried: w.carried.Load(), Cut: w.cut.Load(), Lost: w.lost.Load(),
		Delayed: w.delayed.Load(), Duplicated: w.duplicated.Load()}
}

// carry takes the packets of one place to where they go.
func (w *Network) carry(from int) {
	buf := make([]byte, networkMTU)
	for {
		n, err := w.tuns[from].Read(buf)
		if err != nil {
			return // closed
		}
		packet := buf[:n]
		// An IPv4 header is 20 bytes and ends with the destination. Any other packet is IPv6's
		// search for neighbours.
		if n < 20 || packet[0]>>4 != 4 {
			continue
		}
		to := int(packet[19])
		if to == 254 {
			to = Host
		}
		if to > w.n {
			continue
		}
		w.deliver(from, to, packet)
	}
}

func (w *Network) deliver(from, to int, packet []byte) {
	w.mu.Lock()
	l := w.links[[2]int{from, to}]
	lost, twice := w.rng.Float64() < l.Loss, w.rng.Float64() < l.Duplicate
	delay := l.Delay
	if l.Jitter > 0 {
		delay += time.Duration(w.rng.Int64N(int64(l.Jitter)))
	}
	w.mu.Unlock()
	times := 1
	switch {
	case l.Cut:
		w.cut.Add(1)
		return
	case lost:
		w.lost.Add(1)
		return
	case twice:
		w.duplicated.Add(1)
		times = 2
	}
	w.carried.Add(1)
	if delay > 0 {
		w.delayed.Add(1)
	}
	for range times {
		if delay > 0 {
			w.slow[to].add(append([]byte(nil), packet...), time.Now().Add(delay))
		} else {
			send(w.tuns[to], packet)
		}
	}
}

// send sends a packet to a place. A device whose queue is full loses it, as networks do.
func send(tun io.Writer, packet []byte) { _, _ = tun.Write(packet) }

// Close removes the namespaces. Processes in them lose their network.
func (w *Network) Close() {
	for _, slow := range w.slow {
		slow.close()
	}
	for _, tun := range w.tuns[min(1, len(w.tuns)):] {
		tun.Close() // its device goes, too
	}
	// The host's is last, as it holds the number of the subnet.
	defer func() {
		for _, tun := range w.tuns[:min(1, len(w.tuns))] {
			tun.Close()
		}
		w.done.Wait()
	}()
	for place := 1; place <= w.n; place++ {
		// An error means that it was never made.
		_ = exec.Command("ip", "netns", "del", w.namespace(place)).Run()
	}
}
