#!/usr/bin/env bash
# What searches have found, run again by `make replay`; `make explore` adds a line for each finding. The simulator's seeds
# do not fix how goroutines take turns, so each runs several times.
set -ex
go test ./integration/sim -run '^TestSim$' -count=1 -sim.repeat=5 -sim.seed=20025
go test ./integration/sim -run '^TestSim$' -count=1 -sim.repeat=5 -sim.seed=20404
go test ./integration/sim -run '^TestSim$' -count=1 -sim.repeat=5 -sim.seed=20451
go test ./integration/sim -run '^TestSim$' -count=1 -sim.repeat=5 -sim.seed=20975
go test ./integration/sim -run '^TestSim$' -count=1 -sim.repeat=5 -sim.seed=21028
go test ./integration/sim -run '^TestSim$' -count=1 -sim.repeat=5 -sim.seed=21262
go test ./integration/sim -run '^TestSim$' -count=1 -sim.repeat=5 -sim.seed=21980
go test ./integration/sim -run '^TestSim$' -count=1 -sim.repeat=5 -sim.seed=30764
go test ./integration/sim -run '^TestSim$' -count=1 -sim.repeat=5 -sim.seed=40012
go test ./integration/sim -run '^TestSim$' -count=1 -sim.repeat=5 -sim.seed=40424
