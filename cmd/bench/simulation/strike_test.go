package simulation

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAnOutageIsOverWhenCallsHaveRecovered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o outage
		first := time.Now()
		if o.wasSince(first) {
			t.Error("there was one before any began")
		}
		end, endOther := o.begin(), o.begin()
		time.Sleep(time.Minute)
		end()
		if during := time.Now(); !o.wasSince(during) {
			t.Error("there is none while another one lasts")
		}
		endOther()
		time.Sleep(recoveryTime / 2)
		if shortly := time.Now(); !o.wasSince(shortly) {
			t.Error("there was none shortly after its end")
		}
		time.Sleep(recoveryTime)
		if later := time.Now(); o.wasSince(later) || !o.wasSince(first) {
			t.Errorf("later: %v, since the beginning: %v", o.wasSince(later), o.wasSince(first))
		}
	})
}
