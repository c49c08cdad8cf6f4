module artseal.dev/artseal-go

go 1.24
