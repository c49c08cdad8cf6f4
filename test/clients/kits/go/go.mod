module program

go 1.24

require artseal.dev/artseal-go v0.1.0

replace artseal.dev/artseal-go => ./artseal-go
