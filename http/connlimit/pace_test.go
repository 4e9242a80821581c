package connlimit_test

import (
	"testing"
	"time"

	"lieudit/http/connlimit"
)

const second = time.Second

// add is bytes that came after a wait.
type add struct {
	bytes  int64
	waited time.Duration
}

func TestAClientIsFastEnoughByWindows(t *testing.T) {
	t.Parallel()
	const enough = connlimit.MinRate * 30
	for _, c := range []struct {
		what string
		adds []add
		want bool // of the last one
	}{
		{"nothing in less than a window", []add{{0, 29 * second}}, true},
		{"nothing in a window", []add{{0, 30 * second}}, false},
		{"enough", []add{{enough, 30 * second}}, true},
		{"a byte less", []add{{enough - 1, 30 * second}}, false},
		{"enough in parts", []add{{1, 10 * second}, {enough - 2, 10 * second}, {1, 10 * second}}, true},
		{"enough, and then not", []add{{enough, 30 * second}, {enough - 1, 30 * second}}, false},
		{"more, and then a little less", []add{{enough + 100, 30 * second}, {enough - 100, 30 * second}}, true},
		{"more, a little less, and less again", []add{{enough + 100, 30 * second}, {enough - 100, 30 * second}, {enough - 1, 30 * second}}, false},
		{"much more makes up for no window", []add{{9 * enough, 30 * second}, {0, 30 * second}}, false},
		{"what comes without waiting", []add{{1, 0}, {1, 0}, {1, 0}}, true},
	} {
		var m connlimit.Meter
		got := true
		for _, a := range c.adds {
			got = m.Add(a.bytes, a.waited)
		}
		if got != c.want {
			t.Errorf("%s: fast %t, want %t", c.what, got, c.want)
		}
	}
}

func TestTheNextBytesMayTakeWhatIsLeftOfTheWindow(t *testing.T) {
	t.Parallel()
	var m connlimit.Meter
	if got := m.Timeout(); got != 30*second {
		t.Errorf("at first %v", got)
	}
	m.Add(100, 12*second)
	if got := m.Timeout(); got != 18*second {
		t.Errorf("after 12 seconds %v", got)
	}
	m.Add(connlimit.MinRate*30, second)
	if got := m.Timeout(); got != 30*second {
		t.Errorf("in a window that has enough %v", got)
	}
}
