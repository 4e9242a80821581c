package listener

import "testing"

func TestFileDescriptorsAreKeptBackForTheLog(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wanted, descriptors, open int
		want                      Limits
	}{
		{8192, 1 << 20, 40, Limits{8192, 8192, 64}},
		{8192, 20_000, 40, Limits{8192, 8192, 64}},
		{8192, 4096, 40, Limits{1484, 1484, 64}}, // a quarter is kept back
		{8192, 400, 40, Limits{114, 114, 32}},
		{50, 400, 40, Limits{50, 50, 32}},
		{8192, 4096, 2000, Limits{504, 504, 64}}, // a long log
	} {
		got, err := divideDescriptors(c.wanted, c.descriptors, c.open)
		if err != nil || got != c.want {
			t.Errorf("%d of %d descriptors, %d open: %+v, %v; want %+v", c.wanted, c.descriptors, c.open, got, err, c.want)
		}
		if kept := c.descriptors - c.open - got.API - got.Area - got.Ops; kept < minDescriptorReserve {
			t.Errorf("%d of %d descriptors are kept back", kept, c.descriptors)
		}
	}
	if _, err := divideDescriptors(8192, 150, 40); err == nil {
		t.Error("150 descriptors are enough")
	}
}
