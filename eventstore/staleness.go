package eventstore

import "time"

// MaxStaleness is the greatest age of the data of the log that an answer may rely on. A key that was revoked on another instance is
// refused everywhere within this time, and while an instance cannot be that sure of the log it refuses requests.
const MaxStaleness = time.Second
