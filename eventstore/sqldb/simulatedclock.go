package sqldb

import (
	"database/sql/driver"
	"fmt"
	"sync"
	"time"

	engine "modernc.org/sqlite"
)

// clocks are the simulated clocks of SQLite databases by their numbers, see DB.Now. SQLite's functions belong to the process, so they
// cannot be held by a DB; a statement with the time in its text would be parsed each time.
var clocks sync.Map

// clockFunction reads a clock. It is made once, and only in a simulation.
const clockFunction = "simulated_clock"

var registerClockFunction = sync.OnceValue(func() error {
	return engine.RegisterScalarFunction(clockFunction, 1, func(_ *engine.FunctionContext, args []driver.Value) (driver.Value, error) {
		clock, ok := clocks.Load(args[0])
		if !ok {
			return nil, fmt.Errorf("no clock %v", args[0])
		}
		return clock.(func() time.Time)().UnixMicro(), nil
	})
})

var clockNumbers struct {
	sync.Mutex
	last int64
}

// addClock adds a clock and returns it as an SQL expression, until remove is called.
func addClock(clock func() time.Time) (expression string, remove func(), err error) {
	if err := registerClockFunction(); err != nil {
		return "", nil, err
	}
	clockNumbers.Lock()
	defer clockNumbers.Unlock()
	clockNumbers.last++
	n := clockNumbers.last
	clocks.Store(n, clock)
	return fmt.Sprintf("%s(%d)", clockFunction, n), func() { clocks.Delete(n) }, nil
}
