package process

import "testing"

// takeAll takes until the share refuses, and returns the number taken.
func takeAll(s *DescriptorShare) int {
	for n := 0; ; n++ {
		if !s.Take() {
			s.Refuse()
			s.Return()
			return n
		}
	}
}

func TestPool_ClientsFirst_LeaveTheRest(t *testing.T) {
	for _, test := range []struct{ limit, clients, http int }{
		{600, 413, 37},
		{1024, 704, 64},
		{2600, 2280, 64},
		{1 << 20, 1<<20 - 256 - 64, 64},
		{64, 44, 4},
	} {
		p := NewDescriptors(test.limit)
		if n := MostClients(test.limit); n != test.clients {
			t.Errorf("of %d, clients are said to get %d, want %d", test.limit, n, test.clients)
		}
		if n := takeAll(p.Clients); n != test.clients {
			t.Errorf("of %d, clients get %d, want %d", test.limit, n, test.clients)
		}
		if n := takeAll(p.HTTP); n != test.http {
			t.Errorf("of %d, HTTP gets %d beside them, want %d", test.limit, n, test.http)
		}
		if n := p.Refused(); n != 2 {
			t.Errorf("%d are counted as refused, want one of each", n)
		}
	}
}

// HTTP's many streams leave half to the ZooKeeper port, and a released descriptor can be taken again.
func TestPool_HTTPFirst_LeavesHalf(t *testing.T) {
	p := NewDescriptors(2600)
	if n := takeAll(p.HTTP); n != 1172 {
		t.Errorf("HTTP gets %d", n)
	}
	if n := takeAll(p.Clients); n != 1172 {
		t.Errorf("clients get %d beside it", n)
	}
	p.HTTP.Return()
	if n := takeAll(p.Clients); n != 1 {
		t.Errorf("clients get %d more", n)
	}
}

// A crowd beyond one port's bound, which counts until it is closed, takes nothing from the other port's share.
func TestPool_Crowd_DoesNotTouchTheOthers(t *testing.T) {
	p := NewDescriptors(600)
	takeAll(p.Clients)
	for range 100 {
		if p.Clients.Take() {
			t.Fatal("taken beyond the bound")
		}
	}
	if !p.HTTP.Take() {
		t.Error("HTTP got nothing")
	}
}

func TestShare_Nil_RefusesNothing(t *testing.T) {
	var s *DescriptorShare
	if !s.Take() {
		t.Error("a nil share refuses")
	}
	s.Return()
}
